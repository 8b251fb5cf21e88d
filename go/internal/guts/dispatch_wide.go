//go:build !purego && (amd64 || arm64)

package guts

import "unsafe"

// One is the chaining value of a message of at most ChunkLen bytes: a chunk, or the block of a parent.
func One(out *CV, in []byte, key *CV, counter uint64, f Flags) {
	if active == Portable {
		onePortable(out, in, key, counter, f)
		return
	}
	one(out, in, key, counter, f)
}

// Parent is the chaining value of a parent. flags are all its flags.
func Parent(out, left, right, key *CV, flags uint32) {
	if active == Portable {
		parentPortable(out, left, right, key, flags)
		return
	}
	block := [2]CV{*left, *right}
	one(out, (*[BlockLen]byte)(unsafe.Pointer(&block))[:], key, 0, Flags{All: flags})
}

// pointers are the next blocks of the inputs of a step. They are passed by value: what is stored through a pointer counts
// as escaped, and would put the buffers of all callers on the heap.
type pointers [MaxLanes]unsafe.Pointer

// rowD is row d of the states of a step: counter (low, high), block length and flags of each input. The column kernels
// want a row of MaxLanes words for each of the four, the row kernels four words for each input.
type rowD [4 * MaxLanes]uint32

// place is the index of the first word of an input in rowD, and the distance to its next words.
func place(width, lane int) (first, next int) {
	if isColumn(width) {
		return lane, MaxLanes
	}
	return 4 * lane, 1
}

func (d *rowD) set(width, lane int, counter uint64, blockLen, flags uint32) {
	i, next := place(width, lane)
	d[i&63] = uint32(counter)
	d[(i+next)&63] = uint32(counter >> 32)
	d[(i+2*next)&63] = blockLen
	d[(i+3*next)&63] = flags
}

// Chunks writes the chaining values of the chunks of head and then in, the first of which has number counter, and
// returns how many there are. head is whole chunks and may be empty; the last chunk of in may be short. cvs has MaxLanes
// spare elements.
func Chunks(cvs []CV, head, in []byte, key *CV, counter uint64, flags uint32) int {
	n := chunkCount(head, in)
	if active == Portable {
		chunksPortable(cvs, head, in, key, counter, flags)
		return n
	}
	var d rowD
	for i := 0; i < n; {
		k, width := group(n - i)
		if width == 1 {
			one(&cvs[i], chunkAt(head, in, i), key, counter+uint64(i), ChunkFlags(flags, 0))
			i++
			continue
		}
		for j := range k {
			d.set(width, j, counter+uint64(i+j), BlockLen, flags)
		}
		ptr := chunkPointers(head, in, i, k, width)
		if short := len(head) + len(in) - (i+k-1)*ChunkLen; short < ChunkLen {
			shortGroup(cvs[i:], ptr, &d, k, width, short, key)
		} else {
			step(width, &cvs[i], &ptr, &d, ChunkLen/BlockLen, key, ChunkStart, ChunkEnd)
		}
		i += k
	}
	return n
}

// chunkPointers points k inputs at the chunks from number i on, and the idle ones at the first of those.
func chunkPointers(head, in []byte, i, k, width int) (ptr pointers) {
	h := max(0, min(k, len(head)/ChunkLen-i))
	for j := range h {
		ptr[j] = unsafe.Pointer(&head[(i+j)*ChunkLen])
	}
	if h < k {
		from := unsafe.Pointer(&in[(i+h)*ChunkLen-len(head)])
		for j := h; j < k; j++ {
			ptr[j&15] = unsafe.Add(from, (j-h)*ChunkLen)
		}
	}
	for j := k; j < width; j++ {
		ptr[j&15] = ptr[0]
	}
	return ptr
}

// shortGroup hashes k chunks of which the last has only short bytes, fewer than ChunkLen: all together up to its
// last block, then that block beside the next one of the others, then the rest of the others.
func shortGroup(cvs []CV, ptr pointers, d *rowD, k, width, short int, key *CV) {
	const blocks = ChunkLen / BlockLen
	whole := (short - 1) / BlockLen
	lane := k - 1
	var last [BlockLen]byte // with zeros after the message
	size := copy(last[:], unsafe.Slice((*byte)(ptr[lane]), short)[whole*BlockLen:])
	first := uint32(ChunkStart)
	if whole > 0 {
		step(width, &cvs[0], &ptr, d, whole, key, first, 0)
		ptr = ptr.advance(whole, width)
		first, key = 0, nil
	}
	ptr[lane] = unsafe.Pointer(&last)
	i, next := place(width, lane)
	d[i+2*next] = uint32(size)
	d[i+3*next] |= ChunkEnd
	var end uint32
	if whole == blocks-1 {
		end = ChunkEnd
	}
	step(width, &cvs[0], &ptr, d, 1, key, first, end)
	if whole < blocks-1 {
		ended := cvs[lane]
		ptr[lane] = ptr[0]
		ptr = ptr.advance(1, width)
		step(width, &cvs[0], &ptr, d, blocks-1-whole, nil, 0, ChunkEnd)
		cvs[lane] = ended
	}
}

func (ptr pointers) advance(blocks, width int) pointers {
	for j := range width {
		ptr[j&15] = unsafe.Add(ptr[j&15], blocks*BlockLen)
	}
	return ptr
}

// parents writes the chaining values of the parents of src[0] and src[1], src[2] and src[3], and so on. dst may be
// the same memory as src, or begin one element after it. flags is the mode alone.
func parents(dst, src []CV, pairs int, key *CV, flags uint32) {
	flags |= ParentFlag
	if active == Portable {
		parentsPortable(dst, src, pairs, key, flags)
		return
	}
	if pairs == 1 {
		Parent(&dst[0], &src[0], &src[1], key, flags)
		return
	}
	var d rowD
	var ptr pointers
	set := 0
	for i := 0; i < pairs; {
		k, width := group(pairs - i)
		if width == 1 {
			Parent(&dst[i], &src[2*i], &src[2*i+1], key, flags)
			i++
			continue
		}
		if width != set {
			for j := range width {
				d.set(width, j, 0, BlockLen, flags)
			}
			set = width
		}
		for j := range width {
			ptr[j&15] = unsafe.Pointer(&src[2*(i+min(j, k-1))])
		}
		step(width, &dst[i], &ptr, &d, 1, key, 0, 0)
		i += k
	}
}

// xof writes root output. The blocks that do not fill a group are made as a group too, beside out, where that is
// faster than one by one.
func xof(out []byte, n *Node, counter uint64) {
	width := rootWidth()
	if width == 1 {
		xofPortable(out, n, counter)
		return
	}
	flags := n.Flags | Root
	if groups := len(out) / (width * BlockLen); groups > 0 {
		rootBlocks(&out[0], n, counter, flags, groups)
		out = out[groups*width*BlockLen:]
		counter += uint64(groups * width)
	}
	switch {
	case len(out) > 2*BlockLen:
		var group [MaxLanes * BlockLen]byte
		rootBlocks(&group[0], n, counter, flags, 1)
		copy(out, group[:])
	case len(out) > 0:
		xofPortable(out, n, counter)
	}
}
