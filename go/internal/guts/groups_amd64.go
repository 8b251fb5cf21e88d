//go:build !purego

package guts

import "unsafe"

// Reduce hashes in, whose first chunk has number counter, and writes the chaining values of its
// subtrees of 2^level chunks, the last of which may be smaller. The level is as high as whole
// groups allow, and at most the one given. It returns how many values there are, and the level. cvs
// has room for those of all chunks and MaxLanes more, groups for all whole groups.
func Reduce(cvs []CV, groups []Group, in []byte, key *CV, counter uint64, flags uint32, most int) (n, level int) {
	lanes := groupLanes()
	if lanes == 0 || len(in) < 2*lanes*ChunkLen {
		return Chunks(cvs, in, key, counter, flags), 0
	}
	left := len(in) / (lanes * ChunkLen)
	_ = groups[(left*lanes-1)/MaxLanes]
	ahead := 0
	if len(in) >= BatchChunks*ChunkLen {
		// This is a part of a long input, with more streams at once than the hardware's prefetchers
		// follow.
		ahead = lanes * ChunkLen
	}
	span(&groups[0], &in[0], counter, key, ChunkFlags(flags, 0), left, ahead)
	// The chunks after the last whole group are values from the beginning.
	tail := 0
	if rest := in[left*lanes*ChunkLen:]; len(rest) > 0 {
		tail = Chunks(cvs, rest, key, counter+uint64(left*lanes), flags)
	}
	for ; left > 1 && level < most; level++ {
		if left&1 == 1 {
			left--
			copy(cvs[lanes:], cvs[:tail])
			ungroup(&cvs[0], groupAt(groups, left, lanes))
			tail += lanes
		}
		left /= 2
		merge(&groups[0], &groups[0], key, flags|ParentFlag, left)
		tail = ParentLevel(cvs, tail, key, flags)
	}
	copy(cvs[left*lanes:], cvs[:tail])
	for i := range left {
		ungroup(&cvs[i*lanes], groupAt(groups, i, lanes))
	}
	return left*lanes + tail, level
}

// groupAt is group i of consecutive groups with this many lanes.
func groupAt(groups []Group, i, lanes int) *Group {
	return (*Group)(unsafe.Add(unsafe.Pointer(&groups[0]), i*lanes*OutLen))
}
