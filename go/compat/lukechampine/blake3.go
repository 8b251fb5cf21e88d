// Package blake3 has the API of lukechampine.com/blake3, version 1.4, over package blake3 of this module: a program moves over
// by changing its import. New programs use the latter directly.
package blake3

import (
	"bytes"
	"errors"
	"hash"
	"io"
	"math"

	"github.com/bulla-dev/bulla/go/bao"
	"github.com/bulla-dev/bulla/go/blake3"
)

// Hasher is a [hash.Hash] with a digest of any length.
type Hasher struct {
	hasher *blake3.Hasher
	size   int
}

var _ hash.Hash = (*Hasher)(nil)

// New is a hasher with digests of size bytes. A key of 32 bytes makes it a keyed hasher, nil a plain one; it panics
// if the key has another length.
func New(size int, key []byte) *Hasher {
	if key == nil {
		return &Hasher{blake3.New(), size}
	}
	h, err := blake3.NewKeyed(key)
	if err != nil {
		panic(err)
	}
	return &Hasher{h, size}
}

// Write absorbs p. It never fails.
func (h *Hasher) Write(p []byte) (int, error) { return h.hasher.Write(p) }

// Sum appends the digest of the input so far to b.
func (h *Hasher) Sum(b []byte) []byte {
	n := len(b)
	b = append(b, make([]byte, h.size)...)
	h.hasher.Finalize(b[n:])
	return b
}

// Reset returns the hasher to its state before any input.
func (h *Hasher) Reset() { h.hasher.Reset() }

// BlockSize is the length of a block, 64 bytes.
func (h *Hasher) BlockSize() int { return blake3.BlockSize }

// Size is the length of the digest.
func (h *Hasher) Size() int { return h.size }

// XOF is a reader of the output of the hash of the input so far.
func (h *Hasher) XOF() *OutputReader { return &OutputReader{reader: h.hasher.Digest()} }

// Sum256 is the 32-byte hash of b.
func Sum256(b []byte) [32]byte { return blake3.Sum256(b) }

// Sum512 is the 64-byte hash of b.
func Sum512(b []byte) [64]byte { return blake3.Sum512(b) }

// DeriveKey fills subKey with a key derived from srcKey for the use that ctx names.
func DeriveKey(subKey []byte, ctx string, srcKey []byte) { blake3.DeriveKey(ctx, srcKey, subKey) }

// OutputReader reads the output of a hash.
type OutputReader struct {
	reader *blake3.OutputReader
}

// Read fills p, unless the output ends before.
func (r *OutputReader) Read(p []byte) (int, error) { return r.reader.Read(p) }

// Seek sets the position of the next Read. The output has 2^64-1 bytes: a position above what an int64 holds comes back
// negative.
func (r *OutputReader) Seek(offset int64, whence int) (int64, error) {
	pos := r.reader.Position()
	switch whence {
	case io.SeekStart:
		pos = 0
	case io.SeekCurrent:
	case io.SeekEnd:
		pos = math.MaxUint64
	default:
		panic("blake3: invalid whence")
	}
	// In the ring of 64 bits a sum that has wrapped is on the wrong side of what was added to.
	next := pos + uint64(offset)
	if offset < 0 && next > pos || offset > 0 && next < pos {
		return 0, errors.New("blake3: seek position out of range")
	}
	r.reader.SetPosition(next)
	return int64(next), nil
}

// BaoEncodedSize is the length of a Bao encoding of dataLen bytes.
//
// Deprecated: use package bao.
func BaoEncodedSize(dataLen int, outboard bool) int {
	if outboard {
		return int(bao.OutboardSize(int64(dataLen)))
	}
	return int(bao.EncodedSize(int64(dataLen)))
}

// BaoEncode writes the Bao encoding of data, and returns its hash.
//
// Deprecated: use package bao.
func BaoEncode(dst io.WriterAt, data io.Reader, dataLen int64, outboard bool) ([32]byte, error) {
	if outboard {
		return bao.EncodeOutboardTo(dst, data, dataLen)
	}
	return bao.EncodeTo(dst, data, dataLen)
}

// BaoDecode writes the checked content of an encoding, and says whether all of it matched. Without outboard, data
// is a combined encoding.
//
// Deprecated: use package bao.
func BaoDecode(dst io.Writer, data, outboard io.Reader, root [32]byte) (bool, error) {
	d := bao.NewDecoder(data, root)
	if outboard != nil {
		d = bao.NewOutboardDecoder(data, outboard, root)
	}
	_, err := io.Copy(dst, d)
	if errors.Is(err, bao.ErrMismatch) {
		return false, nil
	}
	return err == nil, err
}

// BaoEncodeBuf is the Bao encoding of data, and its hash.
//
// Deprecated: use package bao.
func BaoEncodeBuf(data []byte, outboard bool) ([]byte, [32]byte) {
	if outboard {
		return bao.EncodeOutboard(data)
	}
	return bao.Encode(data)
}

// BaoVerifyBuf says whether an encoding matches the hash. Without outboard, data is a combined encoding.
//
// Deprecated: use package bao.
func BaoVerifyBuf(data, outboard []byte, root [32]byte) bool {
	var tree io.Reader
	if outboard != nil {
		tree = bytes.NewReader(outboard)
	}
	ok, err := BaoDecode(io.Discard, bytes.NewReader(data), tree, root)
	return ok && err == nil
}
