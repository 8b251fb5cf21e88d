package bao

import (
	"encoding/binary"
	"io"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// ExtractSlice writes a slice: the part of the combined encoding that a reader needs to check and
// read the given part of the input. It checks nothing itself; [NewSliceDecoder] does.
func ExtractSlice(dst io.Writer, encoding io.ReaderAt, start, length uint64) error {
	x := extractor{dst: dst, tree: encoding, layout: combined, from: start, to: sliceEnd(start, length)}
	return x.extract()
}

// ExtractSliceOutboard is like [ExtractSlice], for an input and its outboard encoding.
func ExtractSliceOutboard(dst io.Writer, data, encoding io.ReaderAt, start, length uint64) error {
	x := extractor{dst: dst, tree: encoding, data: data, layout: outboard, from: start, to: sliceEnd(start, length)}
	return x.extract()
}

type extractor struct {
	dst        io.Writer
	tree, data io.ReaderAt
	layout     layout
	from, to   uint64
	total      uint64
	buf        [guts.ChunkLen]byte
}

func (x *extractor) extract() error {
	header := x.buf[:headerLen]
	if err := x.copy(x.tree, 0, headerLen); err != nil {
		return err
	}
	x.total = binary.LittleEndian.Uint64(header)
	if err := checkLength(x.total); err != nil {
		return err
	}
	return x.subtree(subtree{len: x.total}, headerLen)
}

// copy copies n bytes, at most a chunk, and leaves them in buf.
func (x *extractor) copy(from io.ReaderAt, at int64, n uint64) error {
	if err := readFull(io.NewSectionReader(from, at, int64(n)), x.buf[:n]); err != nil {
		return err
	}
	_, err := x.dst.Write(x.buf[:n])
	return err
}

// subtree copies the part of a subtree that the slice contains. The subtree's encoding is at the
// given place.
func (x *extractor) subtree(s subtree, place int64) error {
	switch {
	case !wanted(s, x.total, x.from, x.to):
		return nil
	case s.isChunk() && x.layout == combined:
		return x.copy(x.tree, place, s.len)
	case s.isChunk():
		return x.copy(x.data, int64(s.start), s.len)
	}
	if err := x.copy(x.tree, place, parentLen); err != nil {
		return err
	}
	left := leftLen(s.len)
	if err := x.subtree(subtree{start: s.start, len: left}, place+parentLen); err != nil {
		return err
	}
	right := subtree{start: s.start + left, len: s.len - left}
	return x.subtree(right, place+parentLen+x.layout.size(left))
}
