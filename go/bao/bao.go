// Package bao implements verified streaming. With the BLAKE3 hash of a whole input, and an encoding
// that contains the tree of hashes, a reader can read and check any part as it arrives, without the
// rest.
//
// The formats are those of the Rust crate bao, version 0.13. An encoding is the length of the input
// (8 bytes, little-endian), followed by the tree in pre-order. A parent is its two chaining values
// (64 bytes), and a leaf is a chunk (at most 1024 bytes). A combined encoding contains the chunks;
// an outboard encoding does not. A slice is the part of a combined encoding that a reader needs to
// check a part of the input. The hash is that of package blake3.
//
// The package returns only checked bytes. For an encoding that does not match its hash, the error
// is [ErrMismatch]; for one that ends too early, it is [io.ErrUnexpectedEOF].
package bao

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

const (
	headerLen = 8
	parentLen = 64
	// maxLen is the maximum length of the input: the length of its encoding still fits into an int64.
	maxLen = math.MaxInt64 / 2
)

// ErrMismatch means that an encoding does not belong to the input with the given hash.
var ErrMismatch = errors.New("bao: the data does not match the hash")

// ErrLength means that an encoding states an impossible length.
var ErrLength = errors.New("bao: the encoding states an impossible length")

// EncodedSize returns the length in bytes of the combined encoding of n bytes.
func EncodedSize(n int64) int64 { return headerLen + treeSize(uint64(n)) }

// OutboardSize returns the length in bytes of the outboard encoding of n bytes.
func OutboardSize(n int64) int64 { return headerLen + parentsSize(uint64(n)) }

func chunks(n uint64) uint64 { return max(1, (n+guts.ChunkLen-1)/guts.ChunkLen) }

// parentsSize is the length of all parents over n bytes, treeSize that of the chunks and the
// parents.
func parentsSize(n uint64) int64 { return int64((chunks(n) - 1) * parentLen) }
func treeSize(n uint64) int64    { return int64(n) + parentsSize(n) }

// leftLen is how many of n bytes (more than a chunk) are in the left subtree (BLAKE3 paper, section
// 2.1): the largest power of two of chunks that leaves at least one byte for the right one.
func leftLen(n uint64) uint64 {
	return guts.ChunkLen << (bits.Len64((n-1)/guts.ChunkLen) - 1)
}

// checkLength refuses impossible lengths.
func checkLength(n uint64) error {
	if n > maxLen {
		return fmt.Errorf("%w: %d bytes", ErrLength, n)
	}
	return nil
}

// readHeader reads the length at the beginning of an encoding.
func readHeader(r io.Reader) (uint64, error) {
	var b [headerLen]byte
	if err := readFull(r, b[:]); err != nil {
		return 0, err
	}
	n := binary.LittleEndian.Uint64(b[:])
	return n, checkLength(n)
}

// readFull reads all of b. An end before that is always unexpected.
func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// subtree is a part of the tree, by the bytes of input that it covers.
type subtree struct {
	start, len uint64
	cv         [32]byte // the expected chaining value
	flags      uint32   // guts.Root at the top
}

func (s *subtree) isChunk() bool { return s.len <= guts.ChunkLen }

// children splits a subtree of more than a chunk, after its parent node is checked against its
// chaining value.
func (s *subtree) children(parent *[parentLen]byte) (left, right subtree, err error) {
	var cv guts.CV
	guts.One(&cv, parent[:], &guts.IV, 0, guts.Flags{All: guts.ParentFlag | s.flags})
	if cv.Bytes() != s.cv {
		return left, right, ErrMismatch
	}
	n := leftLen(s.len)
	left = subtree{start: s.start, len: n, cv: [32]byte(parent[:32])}
	right = subtree{start: s.start + n, len: s.len - n, cv: [32]byte(parent[32:])}
	return left, right, nil
}

// checkChunk checks a chunk against its chaining value.
func (s *subtree) checkChunk(chunk []byte) error {
	var cv guts.CV
	guts.One(&cv, chunk, &guts.IV, s.start/guts.ChunkLen, guts.ChunkFlags(0, s.flags))
	if cv.Bytes() != s.cv {
		return ErrMismatch
	}
	return nil
}
