package blake3

import (
	"fmt"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// SetInputOffset makes a hasher that has absorbed nothing work on the subtree that begins at the given byte of a larger
// input: its result is [Hasher.ChainingValue], and it has no hash of its own. Reset undoes it. This is for those who
// build trees of their own; a wrong use gives values without meaning.
//
// It panics if the hasher has absorbed input, or if the offset is not a multiple of 1024. A later Write
// panics if the input grows beyond the largest subtree that can begin at the offset.
func (h *Hasher) SetInputOffset(offset uint64) {
	if h.pending > 0 || h.count() > 0 {
		panic("blake3: the hasher has absorbed input already")
	}
	if offset%guts.ChunkLen != 0 {
		panic(fmt.Sprintf("blake3: the input offset %d is not a multiple of 1024", offset))
	}
	h.offset = offset / guts.ChunkLen
}

// ChainingValue is that of the subtree over all input so far, as a part of a larger input. The hasher stays as it is.
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
