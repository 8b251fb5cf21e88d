package blake3

import (
	"fmt"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// SetInputOffset makes a hasher without input work on the subtree that begins at the given byte of
// a larger input. Its result is [Hasher.ChainingValue]; it has no hash of its own. Reset undoes
// this. Use it only to build your own trees: a wrong use gives meaningless values.
//
// It panics if the hasher has absorbed input, or if the offset is not a multiple of 1024. A later
// Write panics if the input exceeds the largest subtree that can begin at the offset.
func (h *Hasher) SetInputOffset(offset uint64) {
	if h.pending > 0 || h.count() > 0 {
		panic("blake3: the hasher has absorbed input already")
	}
	if offset%guts.ChunkLen != 0 {
		panic(fmt.Sprintf("blake3: the input offset %d is not a multiple of 1024", offset))
	}
	h.offset = offset / guts.ChunkLen
}

// ChainingValue returns the chaining value of the subtree over all input so far, as a part of a
// larger input. It does not change the hasher.
func (h *Hasher) ChainingValue() [32]byte {
	n := h.node()
	cv := n.ChainingValue()
	return cv.Bytes()
}

// checkSubtree panics if n more bytes do not fit into the subtree.
func (h *Hasher) checkSubtree(n int) {
	absorbed := h.count()*guts.ChunkLen + uint64(h.pending)
	if limit := subtreeLen(h.offset); uint64(n) > limit-absorbed {
		panic(fmt.Sprintf("blake3: a subtree at offset %d has at most %d bytes", h.offset*guts.ChunkLen, limit))
	}
}
