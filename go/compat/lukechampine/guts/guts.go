// Package guts has the API of lukechampine.com/blake3/guts, version 1.4: the nodes of the tree, for
// programs that build their own trees. Most programs need package blake3 instead.
package guts

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// Flags of a node, and sizes in bytes (BLAKE3 paper, table 3 and section 2.1).
const (
	FlagChunkStart = 1 << iota
	FlagChunkEnd
	FlagParent
	FlagRoot
	FlagKeyedHash
	FlagDeriveKeyContext
	FlagDeriveKeyMaterial

	BlockSize = guts.BlockLen
	ChunkSize = guts.ChunkLen

	// MaxSIMD is the number of chunks that CompressBuffer takes, and of blocks that CompressBlocks
	// returns.
	MaxSIMD = guts.MaxLanes
)

// IV is the key of the plain hash. This package does not read it: a change affects only programs
// that pass IV as a key.
var IV = [8]uint32(guts.IV)

// A Node is a chunk or a parent before its last compression.
type Node struct {
	CV       [8]uint32 // the chaining value before Block, or the key
	Block    [16]uint32
	Counter  uint64
	BlockLen uint32
	Flags    uint32
}

func fromInner(n guts.Node) Node {
	return Node{CV: n.CV, Block: n.Block, Counter: n.Counter, BlockLen: n.Len, Flags: n.Flags}
}

func (n *Node) inner() guts.Node {
	return guts.Node{CV: n.CV, Block: n.Block, Counter: n.Counter, Len: n.BlockLen, Flags: n.Flags}
}

// ParentNode returns the parent of two nodes with the given chaining values. flags is the mode,
// with FlagRoot at the top.
func ParentNode(left, right [8]uint32, key *[8]uint32, flags uint32) Node {
	return fromInner(guts.ParentNode((*guts.CV)(&left), (*guts.CV)(&right), (*guts.CV)(key), flags))
}

// CompressNode returns all sixteen output words of a node.
func CompressNode(n Node) [16]uint32 {
	inner := n.inner()
	return inner.Compress()
}

// ChainingValue returns the first eight output words of a node.
func ChainingValue(n Node) [8]uint32 {
	inner := n.inner()
	return inner.ChainingValue()
}

// CompressChunk returns the node of a chunk, before its last block. It panics if the chunk is
// longer than ChunkSize.
func CompressChunk(chunk []byte, key *[8]uint32, counter uint64, flags uint32) Node {
	if len(chunk) > ChunkSize {
		panic(fmt.Sprintf("guts: a chunk of %d bytes; it has at most %d", len(chunk), ChunkSize))
	}
	return fromInner(guts.ChunkNode(chunk, (*guts.CV)(key), counter, flags))
}

// CompressBuffer returns the top node of the tree over the first buflen bytes of buf. The first
// chunk has number counter.
func CompressBuffer(buf *[MaxSIMD * ChunkSize]byte, buflen int, key *[8]uint32, counter uint64, flags uint32) Node {
	return fromInner(guts.SubtreeNode(buf[:buflen], (*guts.CV)(key), counter, flags))
}

// CompressEigentree returns the top node of the tree over buf. The length of buf must be a power of
// two of chunks; otherwise it panics. The first chunk has number counter. It starts no goroutines.
func CompressEigentree(buf []byte, key *[8]uint32, counter uint64, flags uint32) Node {
	if len(buf)%ChunkSize != 0 || bits.OnesCount(uint(len(buf)/ChunkSize)) != 1 {
		panic(fmt.Sprintf("guts: an eigentree of %d bytes; their number is 1024 times a power of two", len(buf)))
	}
	return fromInner(guts.SubtreeNode(buf, (*guts.CV)(key), counter, flags))
}

// Eigentrees divides the given number of chunks after the first counter chunks into the largest
// whole trees, and returns their heights from left to right.
func Eigentrees(counter, chunks uint64) (trees []int) {
	for chunks > 0 {
		height := min(bits.TrailingZeros64(counter), bits.Len64(chunks)-1)
		trees = append(trees, height)
		counter += 1 << height
		chunks -= 1 << height
	}
	return trees
}

// CompressBlocks fills out with the output of MaxSIMD copies of n, with counters that start at the
// counter of n.
func CompressBlocks(out *[MaxSIMD * BlockSize]byte, n Node) {
	inner := n.inner()
	if inner.Flags&FlagRoot != 0 {
		inner.Root(out[:], inner.Counter)
		return
	}
	// The kernels for many blocks are for output, which only roots have.
	for i := range MaxSIMD {
		block := WordsToBytes(inner.Compress())
		copy(out[i*BlockSize:], block[:])
		inner.Counter++
	}
}

// BytesToWords reads a block as little-endian words.
func BytesToWords(bytes [64]byte) (words [16]uint32) {
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(bytes[4*i:])
	}
	return words
}

// WordsToBytes writes words little-endian.
func WordsToBytes(words [16]uint32) (bytes [64]byte) {
	for i, word := range words {
		binary.LittleEndian.PutUint32(bytes[4*i:], word)
	}
	return bytes
}
