//go:build !purego && (amd64 || arm64)

package guts

import "unsafe"

// manyLane is an input of SumMany that is being hashed.
type manyLane struct {
	rest  []byte // the input that is not absorbed yet
	out   *[OutLen]byte
	start uint32 // ChunkStart until the first block is absorbed
}

// blocks is how many blocks the lane can take with the flags of its next block.
func (l *manyLane) blocks() int {
	if l.start != 0 || len(l.rest) <= BlockLen {
		return 1
	}
	return (len(l.rest) - 1) / BlockLen
}

// SumMany sets out[i] to the hash of inputs[i], if that has at most ChunkLen bytes. A lane whose
// input has ended takes the next input, so that inputs of mixed lengths keep all lanes busy.
func SumMany(inputs [][]byte, out [][OutLen]byte, key *CV, mode uint32) {
	most := manyLanes()
	if most == 1 {
		sumEach(inputs, out, key, mode)
		return
	}
	for len(inputs) >= most && alike(inputs[:most]) {
		sumAlike(inputs[:most], out, key, mode)
		inputs, out = inputs[most:], out[most:]
	}
	var lanes [MaxLanes]manyLane
	var cvs [MaxLanes]CV
	var last [MaxLanes][BlockLen]byte
	n, next := 0, 0
	for {
		for ; n < most && next < len(inputs); next++ {
			if len(inputs[next]) <= ChunkLen {
				lanes[n] = manyLane{inputs[next], &out[next], ChunkStart}
				cvs[n] = *key
				n++
			}
		}
		if n <= 1 {
			break
		}
		// The next step has as many blocks as all lanes can take.
		_, width := group(n)
		if width < n {
			width = most
		}
		blocks := ChunkLen / BlockLen
		var d rowD
		var ptr pointers
		for j := range lanes[:n] {
			l := &lanes[j]
			blocks = min(blocks, l.blocks())
			i, words := place(width, j)
			d[(i+3*words)&63] = l.start
			if size := len(l.rest); size > BlockLen {
				ptr[j] = unsafe.Pointer(&l.rest[0])
			} else {
				clear(last[j][copy(last[j][:], l.rest):])
				ptr[j] = unsafe.Pointer(&last[j])
				d[(i+2*words)&63] = uint32(size) ^ BlockLen
				d[(i+3*words)&63] |= ChunkEnd | Root
			}
		}
		for j := n; j < width; j++ {
			ptr[j&15] = ptr[0]
		}
		step(width, &cvs[0], &ptr, &d, blocks, nil, Flags{All: mode})
		for j := n - 1; j >= 0; j-- {
			l := &lanes[j]
			l.start = 0
			if len(l.rest) > BlockLen {
				l.rest = l.rest[blocks*BlockLen:]
				continue
			}
			*(*CV)(unsafe.Pointer(l.out)) = cvs[j]
			n--
			lanes[j], cvs[j] = lanes[n], cvs[n]
		}
	}
	if n == 1 {
		lanes[0].finish(&cvs[0], mode)
	}
}

// finish hashes the rest of a lane separately.
func (l *manyLane) finish(cv *CV, mode uint32) {
	one((*CV)(unsafe.Pointer(l.out)), nil, l.rest, cv, 0, Flags{All: mode, First: l.start, Last: ChunkEnd | Root})
}

// alike reports whether all inputs have the same length, in full blocks.
func alike(inputs [][]byte) bool {
	n := len(inputs[0])
	if n == 0 || n > ChunkLen || n%BlockLen != 0 {
		return false
	}
	for _, in := range inputs {
		if len(in) != n {
			return false
		}
	}
	return true
}

// sumAlike hashes as many inputs as there are lanes, all of the same length, directly to out.
func sumAlike(inputs [][]byte, out [][OutLen]byte, key *CV, mode uint32) {
	var d rowD
	var ptr pointers
	for j, in := range inputs {
		ptr[j&15] = unsafe.Pointer(unsafe.SliceData(in))
	}
	blocks := len(inputs[0]) / BlockLen
	step(len(inputs), (*CV)(unsafe.Pointer(&out[0])), &ptr, &d, blocks, key, ChunkFlags(mode, Root))
}
