package blake3

import (
	"math/bits"
	"runtime"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

const (
	// parallelMin is the length in bytes from which on waking other goroutines is worthwhile.
	parallelMin = 512 * guts.ChunkLen
	// The smallest and the largest number of chunks in a segment, the unit of work. The smallest is a
	// group of the widest kernel.
	segmentMin = guts.MaxLanes
	segmentMax = 1024
)

// rootNode is the root of the tree over data, by several goroutines if it is long.
func rootNode(data []byte, key *guts.CV, mode uint32) guts.Node {
	if len(data) >= parallelMin {
		if workers := runtime.GOMAXPROCS(0); workers > 1 {
			return rootParallel(data, key, mode, workers)
		}
	}
	return guts.RootNode(data, key, mode)
}

// rootParallel keeps its own copy of the key: what goroutines share is on the heap.
func rootParallel(data []byte, key *guts.CV, mode uint32, workers int) guts.Node {
	h := &Hasher{key: *key, mode: mode, workers: workers}
	whole := (len(data) - 1) / guts.ChunkLen * guts.ChunkLen
	h.hashParallel(data[:whole])
	h.pending = copy(h.buf[:], data[whole:])
	return h.node()
}

// segmentChunks is the length of a segment for n chunks: a power of two, two to four segments or
// more for each worker, so that a late or slow one does not hold up the others.
func segmentChunks(n, workers int) int {
	s := max(segmentMin, min(segmentMax, n/(4*workers)))
	return 1 << bits.Len(uint(s-1))
}

// hashParallel hashes whole chunks that more input follows, by up to h.workers goroutines.
func (h *Hasher) hashParallel(in []byte) {
	h.flush()
	size := segmentChunks(len(in)/guts.ChunkLen, h.workers)
	// A segment begins at a multiple of its length, in the whole tree.
	lead := int(-h.stack.Count & uint64(size-1))
	lead = min(lead*guts.ChunkLen, len(in))
	h.hashBatches(in[:lead])
	in = in[lead:]

	segment := size * guts.ChunkLen
	first := h.offset + h.stack.Count
	key, mode := h.key, h.mode
	cvs := make([]guts.CV, len(in)/segment)
	inParallel(len(cvs), h.workers, func(i int) {
		cvs[i] = guts.Subtree(in[i*segment:(i+1)*segment], &key, first+uint64(i*size), mode)
	})
	for i := range cvs {
		h.stack.PushSubtree(cvs[i], uint64(size), &key, mode)
	}
	h.hashBatches(in[len(cvs)*segment:])
}
