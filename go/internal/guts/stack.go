package guts

import "math/bits"

// MaxDepth is the height of the tree over 2^64 bytes.
const MaxDepth = 54

// Scratch has the chaining values of one batch at elements 1 and up. The tree puts a left sibling
// into element 0.
type Scratch [1 + BatchChunks + MaxLanes]CV

// Groups holds the groups of one batch.
type Groups [BatchChunks / MaxLanes]Group

// Stack has the finished subtrees to the left of the current input: one for each one bit of Count,
// largest first (BLAKE3 paper, section 5.1.2). A subtree is merged as soon as it is complete, so
// the caller keeps the last chunk back: the root must be finished differently. If the last chunk
// must be finished too, as in a saved state, the last subtree is after the others, unmerged: its
// parent may be the root. Call MergeLast before pushing more.
type Stack struct {
	Count uint64 // chunks in the merged subtrees
	Last  uint64 // chunks in the unmerged last subtree, or 0 if there is none
	cvs   [MaxDepth]CV
}

// Chunks is the number of chunks in all subtrees.
func (s *Stack) Chunks() uint64 { return s.Count + s.Last }

// CVs are the subtrees, the largest first.
func (s *Stack) CVs() []CV {
	n := s.depth()
	if s.Last != 0 {
		n++
	}
	return s.cvs[:n]
}

// depth is the number of merged subtrees.
func (s *Stack) depth() int { return bits.OnesCount64(s.Count) }

// Push appends the chaining values buf[1:1+n] of the next n subtrees of 2^level chunks, at most
// BatchChunks; buf is overwritten. Parents are computed level by level, so that the kernel takes
// many parents of one level together. The number of chunks before them must be a multiple of
// 2^level.
func (s *Stack) Push(buf []CV, n, level int, key *CV, flags uint32) {
	var left [16]CV // the subtrees without a right sibling, at most one for each level
	lefts := 0
	depth := s.depth()
	index := s.Count >> level
	s.Count += uint64(n) << level
	for ; n > 0; index >>= 1 {
		src := buf[1:]
		if index&1 == 1 {
			depth--
			buf[0] = s.cvs[depth]
			src = buf
			n++
		}
		if n&1 == 1 {
			left[lefts] = src[n-1]
			lefts++
		}
		n /= 2
		Parents(buf[1:], src, n, key, flags)
	}
	for lefts > 0 {
		lefts--
		s.cvs[depth] = left[lefts]
		depth++
	}
}

// Root is the root of the whole tree, where buf[1:1+n] are the chaining values of the subtrees of
// 2^level chunks that follow the stack, to the end of the input; the last one may be smaller.
// Together they are at least two. The stack does not change; buf is overwritten.
func (s *Stack) Root(buf []CV, n, level int, key *CV, flags uint32) Node {
	depth := s.depth()
	index := s.Count >> level
	for {
		src := buf[1:]
		if index&1 == 1 {
			depth--
			buf[0] = s.cvs[depth]
			src = buf
			n++
		}
		index >>= 1
		if n == 2 && depth == 0 {
			return ParentNode(&src[0], &src[1], key, flags)
		}
		Parents(buf[1:], src, n/2, key, flags)
		if n&1 == 1 {
			buf[1+n/2] = src[n-1]
		}
		n = (n + 1) / 2
	}
}

// PushSubtree appends the chaining value of a complete subtree of the given number of chunks, a
// power of two that divides Count.
func (s *Stack) PushSubtree(cv CV, chunks uint64, key *CV, flags uint32) {
	depth := s.depth()
	for index := s.Count / chunks; index&1 == 1; index >>= 1 {
		depth--
		Parent(&cv, &s.cvs[depth], &cv, key, flags|ParentFlag)
	}
	s.cvs[depth] = cv
	s.Count += chunks
}

// PushLast appends the chaining value of a subtree of this many chunks, a power of two that divides
// Count. No other subtree may follow. It is merged except for the last step: the right half of the
// subtree that it completes remains, or the subtree itself if it completes none.
func (s *Stack) PushLast(cv CV, chunks uint64, key *CV, flags uint32) {
	s.Last = chunks
	depth := s.depth()
	for ; s.Count/s.Last&3 == 3; s.Last *= 2 {
		depth--
		Parent(&cv, &s.cvs[depth], &cv, key, flags|ParentFlag)
		s.Count -= s.Last
	}
	s.cvs[depth] = cv
}

// SetShape makes room for the subtrees over this many finished chunks, at least two, as PushLast
// leaves them. Their chaining values are those that CVs had before.
func (s *Stack) SetShape(chunks uint64) {
	s.Last = (chunks&-chunks + 1) / 2
	s.Count = chunks - s.Last
}

// MergeLast merges the last subtree if it is unmerged: more input follows it.
func (s *Stack) MergeLast(key *CV, flags uint32) {
	if chunks := s.Last; chunks != 0 {
		s.Last = 0
		s.PushSubtree(s.cvs[s.depth()], chunks, key, flags)
	}
}

// RootOfLast is the root of the whole tree if the unmerged last subtree is the end of the input.
func (s *Stack) RootOfLast(key *CV, flags uint32) Node {
	var buf [1 + MaxLanes]CV
	buf[1] = s.cvs[s.depth()]
	return s.Root(buf[:], 1, 0, key, flags)
}

// Subtree is the chaining value of a complete or right-edge subtree that is not the root: in is not
// empty, and counter is the number of its first chunk.
func Subtree(in []byte, key *CV, counter uint64, flags uint32) CV {
	n := SubtreeNode(in, key, counter, flags)
	return n.ChainingValue()
}

// SubtreeNode is the node at the top of the tree over in, whose first chunk has number counter.
func SubtreeNode(in []byte, key *CV, counter uint64, flags uint32) Node {
	switch {
	case len(in) <= ChunkLen:
		return ChunkNode(in, key, counter, flags)
	case len(in) <= MaxLanes*ChunkLen:
		var cvs [2 * MaxLanes]CV
		var groups [1]Group
		return treeNode(cvs[:], groups[:], in, key, counter, flags)
	case len(in) <= mediumChunks*ChunkLen:
		return mediumNode(in, key, counter, flags)
	default:
		return largeNode(in, key, counter, flags)
	}
}

// RootNode is the root of the tree over in.
func RootNode(in []byte, key *CV, flags uint32) Node { return SubtreeNode(in, key, 0, flags) }

// SumShort is the 32-byte hash of an input of two chunks to MaxLanes.
func SumShort(in []byte, key *CV, mode uint32) (sum [OutLen]byte) {
	var cvs [2 * MaxLanes]CV
	var groups [1]Group
	reduceToTwo(cvs[:], groups[:], in, key, 0, mode)
	sumParent(&sum, (*[2]CV)(cvs[:]), key, mode|ParentFlag|Root)
	return sum
}

// mediumChunks is the most chunks that are hashed without the stack and the scratch of long inputs,
// which take time to clear.
const mediumChunks = 4 * MaxLanes

func mediumNode(in []byte, key *CV, counter uint64, flags uint32) Node {
	var cvs [mediumChunks + MaxLanes]CV
	var groups [mediumChunks / MaxLanes]Group
	return treeNode(cvs[:], groups[:], in, key, counter, flags)
}

// treeNode is the tree over two chunks or more. cvs has room for all their chaining values.
func treeNode(cvs []CV, groups []Group, in []byte, key *CV, counter uint64, flags uint32) Node {
	reduceToTwo(cvs, groups, in, key, counter, flags)
	return ParentNode(&cvs[0], &cvs[1], key, flags)
}

// reduceToTwo leaves the children of the top of the tree over two chunks or more in cvs.
func reduceToTwo(cvs []CV, groups []Group, in []byte, key *CV, counter uint64, flags uint32) {
	n, _ := Reduce(cvs, groups, in, key, counter, flags, MaxDepth)
	for n > 2 {
		n = ParentLevel(cvs, n, key, flags)
	}
}

// ParentLevel replaces n values by their parents, the last one by itself if it has no sibling, and
// returns how many there are then.
func ParentLevel(cvs []CV, n int, key *CV, flags uint32) int {
	Parents(cvs, cvs, n/2, key, flags)
	if n&1 == 1 {
		cvs[n/2] = cvs[n-1]
	}
	return (n + 1) / 2
}

// largeNode is the tree over any number of chunks from two up, batch by batch.
func largeNode(in []byte, key *CV, counter uint64, flags uint32) Node {
	var stack Stack
	var buf Scratch
	var groups Groups
	const batch = BatchChunks * ChunkLen
	for len(in) > batch {
		n, level := Reduce(buf[1:], groups[:], in[:batch], key, counter, flags, MaxDepth)
		stack.Push(buf[:], n, level, key, flags)
		in = in[batch:]
		counter += BatchChunks
	}
	n, level := Reduce(buf[1:], groups[:], in, key, counter, flags, MaxDepth)
	return stack.Root(buf[:], n, level, key, flags)
}

// Absorb pushes whole chunks. More input follows them. counter is the number of the first chunk.
func (s *Stack) Absorb(buf *Scratch, groups *Groups, in []byte, key *CV, counter uint64, flags uint32) {
	for len(in) > 0 {
		// First up to the next place where a batch can begin, then in batches.
		size := min(len(in), (BatchChunks-int(s.Count%BatchChunks))*ChunkLen)
		level := bits.TrailingZeros64(s.Count | uint64(size/ChunkLen))
		n, level := Reduce(buf[1:], groups[:], in[:size], key, counter, flags, level)
		s.Push(buf[:], n, level, key, flags)
		counter += uint64(size / ChunkLen)
		in = in[size:]
	}
}

// AbsorbLast pushes at least two whole chunks. No other chunks may follow: their last subtree is
// left in two halves. counter is the number of the first chunk.
func (s *Stack) AbsorbLast(buf *Scratch, groups *Groups, in []byte, key *CV, counter uint64, flags uint32) {
	end := s.Count + uint64(len(in)/ChunkLen)
	last := int(min(end&-end, BatchChunks))
	for last*ChunkLen > len(in) {
		last /= 2
	}
	whole := len(in) - last*ChunkLen
	s.Absorb(buf, groups, in[:whole], key, counter, flags)
	most := bits.TrailingZeros(uint(last)) - 1
	counter += uint64(whole / ChunkLen)
	if last == 1 {
		One(&buf[0], in[whole:], key, counter, ChunkFlags(flags, 0))
		s.PushLast(buf[0], 1, key, flags)
		return
	}
	n, _ := Reduce(buf[:], groups[:], in[whole:], key, counter, flags, most)
	for n > 2 {
		n = ParentLevel(buf[:], n, key, flags)
	}
	s.PushSubtree(buf[0], uint64(last/2), key, flags)
	s.PushLast(buf[1], uint64(last/2), key, flags)
}
