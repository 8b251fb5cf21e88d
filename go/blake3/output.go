package blake3

import (
	"errors"
	"io"
	"math"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// OutputReader reads the output of a hash, up to 2^64-1 bytes of it, from any position. It is made by [Hasher.Digest].
type OutputReader struct {
	node guts.Node
	pos  uint64
}

// Digest is the name of [OutputReader] in other packages.
type Digest = OutputReader

var _ io.ReadSeeker = (*OutputReader)(nil)

// Read fills p with the output from the present position on. It returns [io.EOF] only at the end of all output.
func (r *OutputReader) Read(p []byte) (int, error) {
	if left := math.MaxUint64 - r.pos; uint64(len(p)) > left {
		p = p[:left]
		if left == 0 {
			return 0, io.EOF
		}
	}
	n := len(p)
	if skip := r.pos % guts.BlockLen; skip != 0 {
		p = p[r.part(p, skip):]
	}
	if whole := len(p) &^ (guts.BlockLen - 1); whole > 0 {
		r.node.Root(p[:whole], r.pos/guts.BlockLen)
		r.pos += uint64(whole)
		p = p[whole:]
	}
	if len(p) > 0 {
		r.part(p, 0)
	}
	return n, nil
}

// part copies what p has room for of the present block, after its first skip bytes.
func (r *OutputReader) part(p []byte, skip uint64) int {
	var block [guts.BlockLen]byte
	r.node.Root(block[:], r.pos/guts.BlockLen)
	n := copy(p, block[skip:])
	r.pos += uint64(n)
	return n
}

// Seek sets the position of the next Read from the beginning or from the present position. There is no seeking from
// the end. A position that is negative, or above what an int64 holds, is an error and changes nothing.
func (r *OutputReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		if r.pos > math.MaxInt64 || offset > 0 && int64(r.pos) > math.MaxInt64-offset {
			return 0, errors.New("blake3: seek beyond the largest position")
		}
		offset += int64(r.pos)
	case io.SeekEnd:
		return 0, errors.New("blake3: the output has no end to seek from")
	default:
		return 0, errors.New("blake3: invalid whence")
	}
	if offset < 0 {
		return 0, errors.New("blake3: seek to a negative position")
	}
	r.pos = uint64(offset)
	return offset, nil
}

// Position is the position of the next Read.
func (r *OutputReader) Position() uint64 { return r.pos }

// SetPosition sets the position of the next Read, also beyond what [OutputReader.Seek] can reach.
func (r *OutputReader) SetPosition(position uint64) { r.pos = position }
