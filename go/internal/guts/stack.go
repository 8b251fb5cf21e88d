package guts

import "math/bits"

// MaxDepth is the height of the tree over 2^64 bytes.
const MaxDepth = 54

// Scratch holds the chaining values of one batch at elements 1 and up. Element 0 is where the tree puts a left sibling.
type Scratch [1 + BatchChunks + MaxLanes]CV

// Stack holds the finished subtrees to the left of what is being hashed: one for each one bit of Count, largest first
// (BLAKE3 paper, section 5.1.2). A subtree is merged as soon as it is complete, so the caller keeps the
// last chunk back: the root must be finished differently.
type Stack struct {
	Count uint64 // chunks in the finished subtrees
	cvs   [MaxDepth]CV
}

// Depth is the number of subtrees on the stack.
func (s *Stack) Depth() int { return bits.OnesCount64(s.Count) }

// At is subtree i, the largest first.
func (s *Stack) At(i int) *CV { return &s.cvs[i] }

// Push appends the chaining values buf[1:1+n] of the next n chunks; buf is overwritten. Parents are built level by
// level, so that many of one level go through the kernel together. n is at most BatchChunks.
func (s *Stack) Push(buf []CV, n int, key *CV, flags uint32) {
	var left [16]CV // the subtrees without a right sibling, at most one for each level
	lefts := 0
	depth := s.Depth()
	index := s.Count
	s.Count += uint64(n)
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

// Root is the root of the whole tree, where buf[1:1+n] are the chaining values of the chunks that follow the
// stack, to the end of the input. Together they are at least two. The stack stays as it is; buf is overwritten.
func (s *Stack) Root(buf []CV, n int, key *CV, flags uint32) Node {
	depth := s.Depth()
	index := s.Count
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

// PushSubtree appends the chaining value of a complete subtree of the given number of chunks, a power of two that
// divides Count.
func (s *Stack) PushSubtree(cv CV, chunks uint64, key *CV, flags uint32) {
	depth := s.Depth()
	for index := s.Count / chunks; index&1 == 1; index >>= 1 {
		depth--
		Parent(&cv, &s.cvs[depth], &cv, key, flags|ParentFlag)
	}
	s.cvs[depth] = cv
	s.Count += chunks
}

// Subtree is the chaining value of a complete or right-edge subtree that is not the root: in is not empty, and
// counter is the number of its first chunk.
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
		return treeNode(cvs[:], in, key, counter, flags)
	case len(in) <= mediumChunks*ChunkLen:
		return mediumNode(in, key, counter, flags)
	default:
		return largeNode(in, key, counter, flags)
	}
}

// RootNode is the root of the tree over in.
func RootNode(in []byte, key *CV, flags uint32) Node { return SubtreeNode(in, key, 0, flags) }

// mediumChunks is how many chunks are still hashed without the stack and the scratch of long inputs, which cost the
// time to clear them.
const mediumChunks = 4 * MaxLanes

func mediumNode(in []byte, key *CV, counter uint64, flags uint32) Node {
	var cvs [mediumChunks + MaxLanes]CV
	return treeNode(cvs[:], in, key, counter, flags)
}

// treeNode is the tree over two chunks or more, all of whose chaining values find room in cvs.
func treeNode(cvs []CV, in []byte, key *CV, counter uint64, flags uint32) Node {
	n := Chunks(cvs, nil, in, key, counter, flags)
	for n > 2 {
		Parents(cvs, cvs, n/2, key, flags)
		if n&1 == 1 {
			cvs[n/2] = cvs[n-1]
		}
		n = (n + 1) / 2
	}
	return ParentNode(&cvs[0], &cvs[1], key, flags)
}

// largeNode is the tree over any number of chunks from two up, batch by batch.
func largeNode(in []byte, key *CV, counter uint64, flags uint32) Node {
	var stack Stack
	var buf Scratch
	for len(in) > BatchChunks*ChunkLen {
		n := Chunks(buf[1:], nil, in[:BatchChunks*ChunkLen], key, counter, flags)
		stack.Push(buf[:], n, key, flags)
		in = in[BatchChunks*ChunkLen:]
		counter += BatchChunks
	}
	n := Chunks(buf[1:], nil, in, key, counter, flags)
	return stack.Root(buf[:], n, key, flags)
}
