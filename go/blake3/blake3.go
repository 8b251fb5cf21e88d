// Package blake3 computes BLAKE3 hashes: plain, keyed and for key derivation, with any output
// length. It is written in Go and Go assembly, without cgo. Build with the tag purego to leave out
// the assembly.
//
// [Sum256] is the one-shot call. [Hasher] takes its input in pieces and implements [hash.Hash].
// [Sum] and [Hasher.Finalize] write outputs of any length; [OutputReader] reads them as a stream.
// [SumMany] hashes many small independent inputs at once. [HashFile] and [HashReader] read their
// input themselves, with progress and cancellation.
//
// BLAKE3 is specified in "BLAKE3: one function, fast everywhere" by O'Connor, Aumasson, Neves and
// Wilcox-O'Hearn.
package blake3

import (
	"fmt"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// Sizes in bytes.
const (
	// Size is the length of the default output.
	Size = guts.OutLen
	// KeySize is the length of a key of the keyed mode.
	KeySize = guts.KeyLen
	// BlockSize is the length of a block of the compression function.
	BlockSize = guts.BlockLen
)

// Kernel returns the name of the kernel that this process uses: portable, x86_64/sse4.1,
// x86_64/avx2, x86_64/avx512 or aarch64/neon. The environment variable BULLA_BLAKE3_FORCE_KERNEL,
// read once at the start of the process, forces a kernel by name. If this machine does not have it,
// the package panics and lists the kernels that the machine has.
func Kernel() string { return guts.Active().String() }

// Sum256 returns the 32-byte hash of data. Several goroutines, at most GOMAXPROCS, hash a large
// input.
func Sum256(data []byte) (sum [32]byte) {
	sumInto(&sum, data, &guts.IV, 0)
	return sum
}

func sumInto(sum *[32]byte, data []byte, key *guts.CV, mode uint32) {
	switch {
	case len(data) <= guts.ChunkLen:
		guts.SumChunk(sum, data, key, mode)
	case len(data) <= guts.MaxLanes*guts.ChunkLen:
		*sum = guts.SumShort(data, key, mode)
	default:
		n := rootNode(data, key, mode)
		*sum = n.Root256()
	}
}

// Sum512 returns the 64-byte hash of data. Its first half is the hash of [Sum256].
func Sum512(data []byte) (sum [64]byte) {
	n := rootNode(data, &guts.IV, 0)
	n.Root(sum[:], 0)
	return sum
}

// Sum fills out, of any length, with the hash of data.
func Sum(data, out []byte) {
	n := rootNode(data, &guts.IV, 0)
	fill(out, &n)
}

// SumKeyed returns the 32-byte hash of data in the keyed mode: a message authentication code.
func SumKeyed(key *[KeySize]byte, data []byte) (sum [32]byte) {
	words := guts.CVFromBytes(key)
	sumInto(&sum, data, &words, guts.KeyedHash)
	return sum
}

// DeriveKey fills out, of any length, with a key derived from material. The context says what the
// key is for. It should be a constant of the program, unique to this use, and contain nothing
// secret or variable (BLAKE3 paper, section 6.2).
func DeriveKey(context string, material []byte, out []byte) {
	key := contextKey(context)
	n := rootNode(material, &key, guts.DeriveKeyMaterial)
	fill(out, &n)
}

// contextKey is the first stage of key derivation.
func contextKey(context string) guts.CV {
	n := guts.RootNode(bytesOf(context), &guts.IV, guts.DeriveKeyContext)
	out := n.Root256()
	return guts.CVFromBytes(&out)
}

// fill writes root output from its beginning.
func fill(out []byte, n *guts.Node) {
	whole := len(out) &^ (guts.BlockLen - 1)
	if whole > 0 {
		n.Root(out[:whole], 0)
	}
	if whole < len(out) {
		var block [guts.BlockLen]byte
		n.Root(block[:], uint64(whole/guts.BlockLen))
		copy(out[whole:], block[:])
	}
}

func checkKey(key []byte) error {
	if len(key) != KeySize {
		return fmt.Errorf("blake3: the key has %d bytes; it must have %d", len(key), KeySize)
	}
	return nil
}
