package guts

import (
	"io"
	"math"
)

// Output is the output of a root, up to 2^64-1 bytes of it, as a stream. A copy is independent.
type Output struct {
	Node Node
	Pos  uint64 // of the next Read
}

// Read fills p with the output from Pos on. It returns io.EOF only at the end of all output.
func (o *Output) Read(p []byte) (int, error) {
	if left := math.MaxUint64 - o.Pos; uint64(len(p)) > left {
		p = p[:left]
		if left == 0 {
			return 0, io.EOF
		}
	}
	n := len(p)
	if skip := o.Pos % BlockLen; skip != 0 {
		p = p[o.part(p, skip):]
	}
	if whole := len(p) &^ (BlockLen - 1); whole > 0 {
		o.Node.Root(p[:whole], o.Pos/BlockLen)
		o.Pos += uint64(whole)
		p = p[whole:]
	}
	if len(p) > 0 {
		o.part(p, 0)
	}
	return n, nil
}

// part copies as much of the current block as fits into p, without its first skip bytes.
func (o *Output) part(p []byte, skip uint64) int {
	var block [BlockLen]byte
	o.Node.Root(block[:], o.Pos/BlockLen)
	n := copy(p, block[skip:])
	o.Pos += uint64(n)
	return n
}
