package bao

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// layout says whether an encoding contains the chunks.
type layout int

const (
	combined layout = iota
	outboard
)

// size is the length of the encoding of a subtree of n bytes.
func (l layout) size(n uint64) int64 {
	if l == outboard {
		return parentsSize(n)
	}
	return treeSize(n)
}

// Encode returns the combined encoding of data, and its hash.
func Encode(data []byte) (encoding []byte, hash [32]byte) { return encode(data, combined) }

// EncodeOutboard returns the outboard encoding of data, and its hash.
func EncodeOutboard(data []byte) (encoding []byte, hash [32]byte) { return encode(data, outboard) }

func encode(data []byte, l layout) ([]byte, [32]byte) {
	n := uint64(len(data))
	b := make(memory, headerLen+l.size(n))
	e := encoder{dst: b, layout: l, next: func(n int) ([]byte, error) {
		part := data[:n]
		data = data[n:]
		return part, nil
	}}
	hash, err := e.encode(n)
	if err != nil {
		panic(err) // writing to existing memory does not fail
	}
	return b, hash
}

// memory is an io.WriterAt of a fixed length.
type memory []byte

func (m memory) WriteAt(p []byte, at int64) (int, error) { return copy(m[at:], p), nil }

// EncodeTo writes the combined encoding of the first size bytes of data, and returns their hash. It
// does not write the parts of the encoding in order. If data ends too early, the error is
// [io.ErrUnexpectedEOF].
func EncodeTo(dst io.WriterAt, data io.Reader, size int64) (hash [32]byte, err error) {
	return encodeTo(dst, data, size, combined)
}

// EncodeOutboardTo is like [EncodeTo], for the outboard encoding.
func EncodeOutboardTo(dst io.WriterAt, data io.Reader, size int64) (hash [32]byte, err error) {
	return encodeTo(dst, data, size, outboard)
}

func encodeTo(dst io.WriterAt, data io.Reader, size int64, l layout) (hash [32]byte, err error) {
	if size < 0 || size > maxLen {
		return hash, fmt.Errorf("%w: %d bytes", ErrLength, size)
	}
	buf := make([]byte, groupLen)
	e := encoder{dst: dst, layout: l, next: func(n int) ([]byte, error) { return buf[:n], readFull(data, buf[:n]) }}
	return e.encode(uint64(size))
}

// groupLen is how much input is hashed at once: one group of the widest kernel.
const groupLen = guts.MaxLanes * guts.ChunkLen

// encoder writes an encoding from left to right of the input.
type encoder struct {
	dst    io.WriterAt
	layout layout
	next   func(n int) ([]byte, error) // the next n bytes of input
	at     uint64                      // bytes of input so far
	buf    [groupLen + guts.MaxLanes*parentLen]byte
}

func (e *encoder) encode(size uint64) (hash [32]byte, err error) {
	var header [headerLen]byte
	binary.LittleEndian.PutUint64(header[:], size)
	if _, err := e.dst.WriteAt(header[:], 0); err != nil {
		return hash, err
	}
	return e.tree(size, headerLen, guts.Root)
}

// tree writes the encoding of the next size bytes of input at the given place. flags is guts.Root
// at the top.
func (e *encoder) tree(size uint64, place int64, flags uint32) (cv [32]byte, err error) {
	if size <= groupLen {
		return e.group(int(size), place, flags)
	}
	left := leftLen(size)
	var parent [parentLen]byte
	l, err := e.tree(left, place+parentLen, 0)
	if err != nil {
		return cv, err
	}
	r, err := e.tree(size-left, place+parentLen+e.layout.size(left), 0)
	if err != nil {
		return cv, err
	}
	copy(parent[:32], l[:])
	copy(parent[32:], r[:])
	if _, err := e.dst.WriteAt(parent[:], place); err != nil {
		return cv, err
	}
	var top guts.CV
	guts.One(&top, parent[:], &guts.IV, 0, guts.Flags{All: guts.ParentFlag | flags})
	return top.Bytes(), nil
}

// group writes the encoding of at most groupLen bytes. It computes the tree level by level, so that
// the kernel takes all parents of a level at once, and then writes it in pre-order.
func (e *encoder) group(size int, place int64, flags uint32) (cv [32]byte, err error) {
	in, err := e.next(size)
	if err != nil {
		return cv, err
	}
	counter := e.at / guts.ChunkLen
	e.at += uint64(size)
	if size <= guts.ChunkLen {
		var top guts.CV
		guts.One(&top, in, &guts.IV, counter, guts.ChunkFlags(0, flags))
		if e.layout == combined {
			_, err = e.dst.WriteAt(in, place)
		}
		return top.Bytes(), err
	}
	var levels groupLevels
	top := levels.fill(in, counter)
	out := levels.write(e.buf[:0], top, 0, in, e.layout)
	if _, err := e.dst.WriteAt(out, place); err != nil {
		return cv, err
	}
	children := levels.parent(top, 0)
	var root guts.CV
	guts.One(&root, children[:], &guts.IV, 0, guts.Flags{All: guts.ParentFlag | flags})
	return root.Bytes(), nil
}

// groupLevels are the chaining values of a group: level 0 those of the chunks, and each level above
// has half as many. A node without a right sibling is also on the next level, unchanged.
type groupLevels struct {
	cvs [5][2 * guts.MaxLanes]guts.CV
	n   [6]int // nodes on each level
}

// fill computes all levels below the top one, and returns the number of the top level.
func (g *groupLevels) fill(in []byte, counter uint64) (top int) {
	g.n[0] = guts.Chunks(g.cvs[0][:], in, &guts.IV, counter, 0)
	level := 0
	for ; g.n[level] > 2; level++ {
		n := g.n[level]
		guts.Parents(g.cvs[level+1][:], g.cvs[level][:], n/2, &guts.IV, 0)
		if n%2 == 1 {
			g.cvs[level+1][n/2] = g.cvs[level][n-1]
		}
		g.n[level+1] = (n + 1) / 2
	}
	return level + 1
}

// parent is the parent node number i of a level above 0.
func (g *groupLevels) parent(level, i int) (b [parentLen]byte) {
	l, r := g.cvs[level-1][2*i].Bytes(), g.cvs[level-1][2*i+1].Bytes()
	copy(b[:32], l[:])
	copy(b[32:], r[:])
	return b
}

// write appends the encoding of node i of a level. The first chunk of in is the first chunk of that
// node.
func (g *groupLevels) write(b []byte, level, i int, in []byte, l layout) []byte {
	if level == 0 {
		if l == combined {
			b = append(b, in[:min(len(in), guts.ChunkLen)]...)
		}
		return b
	}
	if 2*i+1 == g.n[level-1] {
		return g.write(b, level-1, 2*i, in, l)
	}
	parent := g.parent(level, i)
	b = append(b, parent[:]...)
	b = g.write(b, level-1, 2*i, in, l)
	return g.write(b, level-1, 2*i+1, in[guts.ChunkLen<<(level-1):], l)
}
