package bao

import (
	"io"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// Decoder reads the input from an encoding, and checks it. It is an [io.Reader]. After an error it
// returns no more bytes. It does not read past the end of the encoding: the caller decides whether
// anything may follow.
type Decoder struct {
	tree, data io.Reader // where parents and chunks come from
	hash       [32]byte
	from, to   uint64 // the part of the input that is wanted
	stack      []subtree
	started    bool
	err        error
	buf        [guts.ChunkLen]byte
	ready      []byte // checked bytes that are not returned yet
}

// NewDecoder returns a decoder that reads from a combined encoding.
func NewDecoder(encoding io.Reader, hash [32]byte) *Decoder {
	return &Decoder{tree: encoding, data: encoding, hash: hash, to: maxLen}
}

// NewOutboardDecoder returns a decoder that reads from data and checks it with the outboard
// encoding.
func NewOutboardDecoder(data, encoding io.Reader, hash [32]byte) *Decoder {
	return &Decoder{tree: encoding, data: data, hash: hash, to: maxLen}
}

// NewSliceDecoder returns a decoder that reads the given part of the input from the slice that
// [ExtractSlice] made for the same part. If the part goes past the end of the input, it ends there,
// and the decoder also checks that this is the end.
func NewSliceDecoder(slice io.Reader, hash [32]byte, start, length uint64) *Decoder {
	return &Decoder{tree: slice, data: slice, hash: hash, from: start, to: sliceEnd(start, length)}
}

// sliceEnd is start + length, without overflow.
func sliceEnd(start, length uint64) uint64 {
	if end := start + length; end >= start {
		return end
	}
	return ^uint64(0)
}

// Read returns only checked bytes.
func (d *Decoder) Read(p []byte) (int, error) {
	if !d.started {
		d.started = true
		d.begin()
	}
	for len(d.ready) == 0 && d.err == nil {
		d.step()
	}
	if len(d.ready) == 0 {
		return 0, d.err
	}
	n := copy(p, d.ready)
	d.ready = d.ready[n:]
	return n, nil
}

// begin reads the header.
func (d *Decoder) begin() {
	n, err := readHeader(d.tree)
	if err != nil {
		d.err = err
		return
	}
	d.stack = append(d.stack, subtree{len: n, cv: d.hash, flags: guts.Root})
}

// step reads and checks the next parent or chunk, or skips a subtree that the slice does not
// contain.
func (d *Decoder) step() {
	n := len(d.stack)
	if n == 0 {
		d.err = io.EOF
		return
	}
	s := d.stack[n-1]
	d.stack = d.stack[:n-1]
	if !wanted(s, d.total(s), d.from, d.to) {
		return
	}
	if s.isChunk() {
		d.err = d.chunk(s)
		return
	}
	var parent [parentLen]byte
	if d.err = readFull(d.tree, parent[:]); d.err != nil {
		return
	}
	left, right, err := s.children(&parent)
	if err != nil {
		d.err = err
		return
	}
	d.stack = append(d.stack, right, left)
}

// total is the length of the whole input, if s is the next subtree.
func (d *Decoder) total(s subtree) uint64 {
	if len(d.stack) > 0 {
		s = d.stack[0]
	}
	return s.start + s.len
}

// chunk reads and checks a chunk, and makes its wanted bytes ready.
func (d *Decoder) chunk(s subtree) error {
	b := d.buf[:s.len]
	if err := readFull(d.data, b); err != nil {
		return err
	}
	if err := s.checkChunk(b); err != nil {
		return err
	}
	from := min(max(d.from, s.start), s.start+s.len) - s.start
	to := min(max(d.to, s.start), s.start+s.len) - s.start
	if from < to {
		d.ready = b[from:to]
	}
	return nil
}

// wanted reports whether a slice of an input of total bytes contains the subtree s. An empty slice
// counts as one byte, and a slice that begins past the end contains the last chunk, which proves
// where the end is.
func wanted(s subtree, total, from, to uint64) bool {
	if total == 0 {
		return true
	}
	if from >= total {
		from = total - 1
	}
	to = max(to, from+1)
	return s.start < to && from < s.start+s.len
}
