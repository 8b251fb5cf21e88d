package blake3

import (
	"errors"
	"io"
	"math"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// OutputReader reads the output of a hash, up to 2^64-1 bytes, from any position. [Hasher.Digest]
// makes one.
type OutputReader struct {
	output guts.Output
}

// Digest is the name of [OutputReader] in other packages.
type Digest = OutputReader

var _ io.ReadSeeker = (*OutputReader)(nil)

// Read fills p with the output from the present position. It returns [io.EOF] only at the end of
// all output.
func (r *OutputReader) Read(p []byte) (int, error) { return r.output.Read(p) }

// Seek sets the position of the next Read, from the beginning or from the present position. It
// cannot seek from the end. A position that is negative, or does not fit into an int64, is an error
// and changes nothing.
func (r *OutputReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		if r.output.Pos > math.MaxInt64 || offset > 0 && int64(r.output.Pos) > math.MaxInt64-offset {
			return 0, errors.New("blake3: seek beyond the largest position")
		}
		offset += int64(r.output.Pos)
	case io.SeekEnd:
		return 0, errors.New("blake3: the output has no end to seek from")
	default:
		return 0, errors.New("blake3: invalid whence")
	}
	if offset < 0 {
		return 0, errors.New("blake3: seek to a negative position")
	}
	r.output.Pos = uint64(offset)
	return offset, nil
}

// Position returns the position of the next Read.
func (r *OutputReader) Position() uint64 { return r.output.Pos }

// SetPosition sets the position of the next Read. It also reaches positions that
// [OutputReader.Seek] cannot.
func (r *OutputReader) SetPosition(position uint64) { r.output.Pos = position }
