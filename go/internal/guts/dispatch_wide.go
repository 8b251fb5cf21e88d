//go:build !purego && (amd64 || arm64)

package guts

import "unsafe"

// One is the chaining value of a message of at most ChunkLen bytes: a chunk, or the block of a
// parent.
func One(out *CV, in []byte, key *CV, counter uint64, f Flags) {
	if active == Portable {
		onePortable(out, in, key, counter, f)
		return
	}
	one(out, nil, in, key, counter, f)
}

// SumChunk is the hash of a message of at most ChunkLen bytes.
func SumChunk(out *[OutLen]byte, in []byte, key *CV, mode uint32) {
	if active == Portable {
		sumChunkPortable(out, in, key, mode)
		return
	}
	one((*CV)(unsafe.Pointer(out)), nil, in, key, 0, ChunkFlags(mode, Root))
}

// Parent is the chaining value of a parent. flags are all its flags.
func Parent(out, left, right, key *CV, flags uint32) {
	children := [2]CV{*left, *right}
	parentOf(out, &children, key, flags)
}

func parentOf(out *CV, children *[2]CV, key *CV, flags uint32) {
	if active == Portable {
		parentPortable(out, &children[0], &children[1], key, flags)
		return
	}
	one(out, nil, (*[BlockLen]byte)(unsafe.Pointer(children))[:], key, 0, Flags{All: flags})
}

// sumParent is the hash of an input by the two children of its root. flags are all flags.
func sumParent(out *[OutLen]byte, children *[2]CV, key *CV, flags uint32) {
	if active == Portable {
		sumParentPortable(out, children, key, flags)
		return
	}
	parentOf((*CV)(unsafe.Pointer(out)), children, key, flags)
}

// compressNode is a compression with the output words as bytes: the 32 bytes of out, and those of
// rest if it is not nil.
func compressNode(out, rest *CV, n *Node, counter uint64, flags uint32) {
	block := (*[BlockLen]byte)(unsafe.Pointer(&n.Block))
	one(out, rest, block[:n.Len], &n.CV, counter, Flags{All: flags})
}

// pointers are the next blocks of the inputs of a step. They are passed by value: the compiler
// treats values stored through a pointer as escaped, which would put the buffers of all callers on
// the heap.
type pointers [MaxLanes]unsafe.Pointer

// rowD has the words of row d of a step's states that differ between inputs: each input's counter
// (low, high), the exclusive or of its block length with that of a full block, and its own flags.
// The column kernels need a row of MaxLanes words for each of the four; the row kernels need four
// words for each input.
type rowD [4 * MaxLanes]uint32

// nothing is row d of parents. Kernels only read it.
var nothing rowD

// place is the index of the first word of an input in rowD, and the distance to its next words.
func place(width, lane int) (first, next int) {
	if isColumn(width) {
		return lane, MaxLanes
	}
	return 4 * lane, 1
}

// count sets the counter of an input.
func (d *rowD) count(width, lane int, counter uint64) {
	i, next := place(width, lane)
	d[i&63] = uint32(counter)
	d[(i+next)&63] = uint32(counter >> 32)
}

// Chunks writes the chaining values of the chunks of in, the first of which has number counter, and
// returns how many there are. The last chunk may be short. cvs has MaxLanes spare elements.
func Chunks(cvs []CV, in []byte, key *CV, counter uint64, flags uint32) int {
	n := chunkCount(in)
	if active == Portable {
		chunksPortable(cvs, in, key, counter, flags)
		return n
	}
	var d rowD
	for i, before := 0, 0; i < n; {
		k, width := group(n - i)
		if k == 2 && oneByOne(len(in)-(i+1)*ChunkLen) {
			width = 1
		}
		if width != before && before > 0 {
			d = rowD{}
		}
		before = width
		if width == 1 {
			One(&cvs[i], chunkAt(in, i), key, counter+uint64(i), ChunkFlags(flags, 0))
			i++
			continue
		}
		for j := range k {
			d.count(width, j, counter+uint64(i+j))
		}
		ptr := chunkPointers(in, i, k, width)
		short := len(in) - (i+k-1)*ChunkLen
		if short < ChunkLen {
			shortGroup(cvs[i:], ptr, &d, k, width, short, key, flags)
			return n
		}
		step(width, &cvs[i], &ptr, &d, ChunkLen/BlockLen, key, ChunkFlags(flags, 0))
		i += k
	}
	return n
}

// chunkPointers points k inputs at the chunks from number i on, and the idle ones at the first of
// these.
func chunkPointers(in []byte, i, k, width int) (ptr pointers) {
	from := unsafe.Pointer(&in[i*ChunkLen])
	for j := range k {
		ptr[j&15] = unsafe.Add(from, j*ChunkLen)
	}
	for j := k; j < width; j++ {
		ptr[j&15] = from
	}
	return ptr
}

// shortGroup hashes k chunks. The last one has only short bytes, fewer than ChunkLen. It hashes all
// together up to the short chunk's last block, then that block together with the next block of the
// others, then the rest of the others.
func shortGroup(cvs []CV, ptr pointers, d *rowD, k, width, short int, key *CV, flags uint32) {
	const blocks = ChunkLen / BlockLen
	whole := (short - 1) / BlockLen
	lane := k - 1
	var last [BlockLen]byte // with zeros after the message
	size := copy(last[:], unsafe.Slice((*byte)(ptr[lane]), short)[whole*BlockLen:])
	f := Flags{All: flags, First: ChunkStart}
	if whole > 0 {
		step(width, &cvs[0], &ptr, d, whole, key, f)
		ptr = ptr.advance(whole, width)
		f.First, key = 0, nil
	}
	ptr[lane] = unsafe.Pointer(&last)
	i, next := place(width, lane)
	d[(i+2*next)&63] = uint32(size) ^ BlockLen
	if whole == blocks-1 {
		f.Last = ChunkEnd
		step(width, &cvs[0], &ptr, d, 1, key, f)
		return
	}
	d[(i+3*next)&63] = ChunkEnd
	step(width, &cvs[0], &ptr, d, 1, key, f)
	ended := cvs[lane]
	ptr[lane] = ptr[0]
	ptr = ptr.advance(1, width)
	step(width, &cvs[0], &ptr, d, blocks-1-whole, nil, Flags{All: flags, Last: ChunkEnd})
	cvs[lane] = ended
}

func (ptr pointers) advance(blocks, width int) pointers {
	for j := range width {
		ptr[j&15] = unsafe.Add(ptr[j&15], blocks*BlockLen)
	}
	return ptr
}

// Parents writes the chaining values of the parents of src[0] and src[1], src[2] and src[3], and so
// on. dst may be the same memory as src, or begin one element after it. flags is the mode alone.
func Parents(dst, src []CV, pairs int, key *CV, flags uint32) {
	flags |= ParentFlag
	if active == Portable {
		parentsPortable(dst, src, pairs, key, flags)
		return
	}
	for i := 0; i < pairs; {
		k, width := group(pairs - i)
		switch {
		case width == 1:
			parentOf(&dst[i], (*[2]CV)(src[2*i:]), key, flags)
		case !parentsOf(width, &dst[i], &src[2*i], key, flags):
			parentStep(dst[i:], src[2*i:], k, width, key, flags)
		}
		i += k
	}
}

// parentStep writes the parents of the first k pairs, by a kernel of width lanes.
func parentStep(dst, src []CV, k, width int, key *CV, flags uint32) {
	var ptr pointers
	for j := range k {
		ptr[j&15] = unsafe.Pointer(&src[2*j])
	}
	for j := k; j < width; j++ {
		ptr[j&15] = ptr[0]
	}
	step(width, &dst[0], &ptr, &nothing, 1, key, Flags{All: flags})
}

// xof writes root output. If the last blocks do not fill a group, they are also made as a group,
// outside out, if that is faster than one by one.
func xof(out []byte, n *Node, counter uint64) {
	if active == Portable {
		xofPortable(out, n, counter)
		return
	}
	width := rootWidth()
	if groups := len(out) / (width * BlockLen); groups > 0 && width > 1 {
		rootBlocks(&out[0], n, counter, groups)
		out = out[groups*width*BlockLen:]
		counter += uint64(groups * width)
	}
	if len(out) > 2*BlockLen && width > 1 {
		var group [MaxLanes * BlockLen]byte
		rootBlocks(&group[0], n, counter, 1)
		copy(out, group[:])
		return
	}
	for ; len(out) > 0; out = out[BlockLen:] {
		block := (*[2]CV)(unsafe.Pointer((*[BlockLen]byte)(out)))
		compressNode(&block[0], &block[1], n, counter, n.Flags|Root)
		counter++
	}
}

// root256 is the first 32 bytes of root output.
func root256(out *[OutLen]byte, n *Node) {
	if active == Portable {
		root256Portable(out, n)
		return
	}
	compressNode((*CV)(unsafe.Pointer(out)), nil, n, 0, n.Flags|Root)
}
