// Package blake3 has the API of lukechampine.com/blake3, version 1.4, over package blake3 of this
// module. To migrate, a program changes its import. New programs should use package blake3 of this
// module directly.
package blake3

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"

	"github.com/bulla-dev/bulla/go/bao"
	"github.com/bulla-dev/bulla/go/blake3"
	"github.com/bulla-dev/bulla/go/internal/guts"
)

// Hasher is a [hash.Hash] with a digest of any length. A copy is independent of the original. The
// zero value hashes with a key of zeros and has empty digests; make other hashers with [New].
//
// It contains all its state itself, so that you can copy it. Therefore it hashes small writes one
// chunk at a time. The hasher of package [github.com/bulla-dev/bulla/go/blake3] collects them for
// the wide kernels.
type Hasher struct {
	key     guts.CV
	mode    uint32
	size    int
	pending int // bytes in buf: at least one after any input, unless the stack has an unmerged last subtree
	stack   guts.Stack
	buf     [guts.ChunkLen]byte
}

var _ hash.Hash = (*Hasher)(nil)

// New returns a hasher with digests of size bytes. With a key of 32 bytes it is a keyed hasher,
// with nil a plain one. New panics if the key has another length.
func New(size int, key []byte) *Hasher {
	if key == nil {
		return &Hasher{key: guts.IV, size: size}
	}
	if len(key) != guts.KeyLen {
		panic(fmt.Sprintf("blake3: the key has %d bytes; it must have %d, or be nil for the plain hash", len(key), guts.KeyLen))
	}
	return &Hasher{key: guts.CVFromBytes((*[guts.KeyLen]byte)(key)), mode: guts.KeyedHash, size: size}
}

// Write absorbs p. It never fails.
func (h *Hasher) Write(p []byte) (int, error) {
	n := len(p)
	if n > 0 {
		h.stack.MergeLast(&h.key, h.mode)
	}
	if h.pending+n <= len(h.buf) {
		h.pending += copy(h.buf[h.pending:], p)
		return n, nil
	}
	if h.pending > 0 {
		p = p[copy(h.buf[h.pending:], p):]
		h.absorb(h.buf[:])
	}
	whole := len(p) / guts.ChunkLen * guts.ChunkLen
	if whole == len(p) && whole >= 2*guts.ChunkLen {
		var buf guts.Scratch
		var groups guts.Groups
		h.stack.AbsorbLast(&buf, &groups, p, &h.key, h.stack.Count, h.mode)
		h.pending = 0
		return n, nil
	}
	// The last chunk is kept back: it may be the end.
	whole = (len(p) - 1) / guts.ChunkLen * guts.ChunkLen
	h.absorb(p[:whole])
	h.pending = copy(h.buf[:], p[whole:])
	return n, nil
}

// absorb hashes whole chunks that more input follows.
func (h *Hasher) absorb(in []byte) {
	if len(in) > guts.MaxLanes*guts.ChunkLen {
		var buf guts.Scratch
		var groups guts.Groups
		h.stack.Absorb(&buf, &groups, in, &h.key, h.stack.Count, h.mode)
	} else if len(in) > 0 {
		var buf [1 + 2*guts.MaxLanes]guts.CV
		n := guts.Chunks(buf[1:], in, &h.key, h.stack.Count, h.mode)
		h.stack.Push(buf[:], n, 0, &h.key, h.mode)
	}
}

// root is the root of the tree over all input so far.
func (h *Hasher) root() guts.Node {
	switch {
	case h.stack.Last != 0:
		return h.stack.RootOfLast(&h.key, h.mode)
	case h.stack.Count == 0:
		return guts.RootNode(h.buf[:h.pending], &h.key, h.mode)
	}
	var buf [1 + guts.MaxLanes]guts.CV
	guts.One(&buf[1], h.buf[:h.pending], &h.key, h.stack.Count, guts.ChunkFlags(h.mode, 0))
	return h.stack.Root(buf[:], 1, 0, &h.key, h.mode)
}

// Sum appends the digest of the input so far to b.
func (h *Hasher) Sum(b []byte) []byte {
	n := len(b)
	b = append(b, make([]byte, h.size)...)
	h.XOF().Read(b[n:])
	return b
}

// Reset returns the hasher to its state before any input.
func (h *Hasher) Reset() {
	h.stack.Count, h.stack.Last = 0, 0
	h.pending = 0
}

// BlockSize returns the length of a block, 64 bytes.
func (h *Hasher) BlockSize() int { return blake3.BlockSize }

// Size returns the length of the digest.
func (h *Hasher) Size() int { return h.size }

// XOF returns a reader for the hash output of the input so far.
func (h *Hasher) XOF() *OutputReader { return &OutputReader{guts.Output{Node: h.root()}} }

// Sum256 returns the 32-byte hash of b.
func Sum256(b []byte) [32]byte { return blake3.Sum256(b) }

// Sum512 returns the 64-byte hash of b.
func Sum512(b []byte) [64]byte { return blake3.Sum512(b) }

// DeriveKey fills subKey with a key derived from srcKey for the use that ctx names.
func DeriveKey(subKey []byte, ctx string, srcKey []byte) { blake3.DeriveKey(ctx, srcKey, subKey) }

// OutputReader reads the output of a hash. A copy is independent of the original.
type OutputReader struct {
	output guts.Output
}

// Read fills p, unless the output ends earlier.
func (r *OutputReader) Read(p []byte) (int, error) { return r.output.Read(p) }

// Seek sets the position of the next Read. The output has 2^64-1 bytes: if a position does not fit
// into an int64, Seek returns it as a negative number.
func (r *OutputReader) Seek(offset int64, whence int) (int64, error) {
	pos := r.output.Pos
	switch whence {
	case io.SeekStart:
		pos = 0
	case io.SeekCurrent:
	case io.SeekEnd:
		pos = math.MaxUint64
	default:
		panic("blake3: invalid whence")
	}
	// If the 64-bit sum has wrapped around, it is on the wrong side of its first term.
	next := pos + uint64(offset)
	if offset < 0 && next > pos || offset > 0 && next < pos {
		return 0, errors.New("blake3: seek position out of range")
	}
	r.output.Pos = next
	return int64(next), nil
}

// BaoEncodedSize returns the length of a Bao encoding of dataLen bytes.
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

// BaoDecode writes the checked content of an encoding, and reports whether all of it matched.
// Without outboard, data is a combined encoding. BaoDecode does not read bytes after the content
// and the encoding.
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

// BaoEncodeBuf returns the Bao encoding of data, and its hash.
//
// Deprecated: use package bao.
func BaoEncodeBuf(data []byte, outboard bool) ([]byte, [32]byte) {
	if outboard {
		return bao.EncodeOutboard(data)
	}
	return bao.Encode(data)
}

// BaoVerifyBuf reports whether an encoding matches the hash. Without outboard, data is a combined
// encoding. It refuses bytes after the content or the encoding.
//
// Deprecated: use package bao.
func BaoVerifyBuf(data, outboard []byte, root [32]byte) bool {
	content := bytes.NewReader(data)
	if outboard == nil {
		ok, err := BaoDecode(io.Discard, content, nil, root)
		return ok && err == nil && content.Len() == 0
	}
	tree := bytes.NewReader(outboard)
	ok, err := BaoDecode(io.Discard, content, tree, root)
	return ok && err == nil && content.Len() == 0 && tree.Len() == 0
}
