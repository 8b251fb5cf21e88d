package blake3

import (
	"hash"
	"io"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

const (
	// stageLen is the buffer of a hasher that gets its input in small or odd writes: one group of the
	// widest kernel.
	stageLen = guts.MaxLanes * guts.ChunkLen
	// stageAfter is the number of chunks after which a hasher that gets such writes allocates that
	// buffer: a short message allocates nothing.
	stageAfter = 2
	// queueLen is the number of chaining values of chunks that are kept before their parents are
	// computed, so that the parents too fill the kernel.
	queueLen = 64
)

// stage contains the parts of a hasher that only long inputs in small or odd writes need.
type stage struct {
	buf    [stageLen]byte
	queue  [1 + queueLen + guts.MaxLanes]guts.CV // from element 1 on
	queued int
}

// Hasher computes a hash of input that arrives in pieces. It implements [hash.Hash],
// [io.StringWriter], [encoding.BinaryMarshaler], [encoding.BinaryAppender] and
// [encoding.BinaryUnmarshaler]. Make one with [New], [NewKeyed] or [NewDeriveKey]; the zero value
// computes the plain hash. Two goroutines must not use a Hasher at the same time. Copy it only with
// [Hasher.Clone].
//
// A short message allocates no memory. A long message in one write allocates none either, nor do
// writes of whole kibibytes from 16 up. A long message in other writes allocates a buffer of 19 KiB
// once, which Reset keeps.
type Hasher struct {
	_       noCopy
	key     guts.CV
	mode    uint32
	workers int
	pending int    // bytes in the buffer: once there is input at least one, unless the stack has an unmerged last subtree or the stage a queue
	offset  uint64 // of the input, in chunks; nonzero only in a subtree
	stack   guts.Stack
	stage   *stage
	buf     [guts.ChunkLen]byte // the buffer while there is no stage
}

// noCopy makes go vet report copies, which would share a stage.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

var (
	_ hash.Hash     = (*Hasher)(nil)
	_ io.ReaderFrom = (*Hasher)(nil)
)

// New returns a hasher for the plain hash.
func New() *Hasher { return &Hasher{key: guts.IV} }

// NewKeyed returns a hasher for the keyed mode, or an error if the key does not have 32 bytes.
func NewKeyed(key []byte) (*Hasher, error) {
	h := new(Hasher)
	if err := h.setKey(key); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Hasher) setKey(key []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	h.key = guts.CVFromBytes((*[KeySize]byte)(key))
	h.mode = guts.KeyedHash
	return nil
}

// NewDeriveKey returns a hasher for key material. Its outputs are keys for the use that context
// names. See [DeriveKey].
func NewDeriveKey(context string) *Hasher {
	return &Hasher{key: contextKey(context), mode: guts.DeriveKeyMaterial}
}

// SetConcurrency lets Write use up to n goroutines if it gets several hundred kibibytes at once.
// With n of 0 or 1, the default, it uses none.
func (h *Hasher) SetConcurrency(n int) { h.workers = n }

// Size returns the number of bytes that Sum appends: 32.
func (h *Hasher) Size() int { return Size }

// BlockSize returns the length of a block, 64 bytes. Writes of other lengths cost no more.
func (h *Hasher) BlockSize() int { return BlockSize }

// Reset returns the hasher to its state before any input; key and mode stay.
func (h *Hasher) Reset() {
	h.stack.Count, h.stack.Last = 0, 0
	h.offset = 0
	h.pending = 0
	if h.stage != nil {
		h.stage.queued = 0
	}
}

// Clone returns an independent copy of the hasher in its present state.
func (h *Hasher) Clone() *Hasher {
	c := &Hasher{key: h.key, mode: h.mode, workers: h.workers, pending: h.pending, offset: h.offset, stack: h.stack, buf: h.buf}
	if h.stage != nil {
		s := *h.stage
		c.stage = &s
	}
	return c
}

// ready gives the zero value the key of the plain hash.
func (h *Hasher) ready() {
	if h.mode == 0 && h.key[0] == 0 {
		h.key = guts.IV
	}
}

// Write absorbs p. It never fails.
func (h *Hasher) Write(p []byte) (int, error) {
	h.ready()
	if h.offset|h.stack.Last != 0 {
		h.prepare(len(p))
	}
	buf := h.buffer()
	if h.pending+len(p) <= len(buf) {
		h.pending += copy(buf[h.pending:], p)
		return len(p), nil
	}
	h.absorb(p)
	return len(p), nil
}

// WriteString absorbs s. It never fails.
func (h *Hasher) WriteString(s string) (int, error) { return h.Write(bytesOf(s)) }

// prepare prepares a subtree or a restored hasher for a write of n bytes.
func (h *Hasher) prepare(n int) {
	if h.offset != 0 {
		h.checkSubtree(n)
	}
	if n > 0 {
		h.stack.MergeLast(&h.key, h.mode)
	}
}

func (h *Hasher) buffer() []byte {
	if h.stage != nil {
		return h.stage.buf[:]
	}
	return h.buf[:]
}

// count is the number of chunks that are hashed.
func (h *Hasher) count() uint64 {
	if h.stage != nil {
		return h.stack.Chunks() + uint64(h.stage.queued)
	}
	return h.stack.Chunks()
}

// absorb takes input that does not fit into the buffer.
func (h *Hasher) absorb(p []byte) {
	if h.stage == nil && h.stack.Count >= stageAfter && (h.pending > 0 || len(p) < stageLen) {
		h.stage = new(stage)
		copy(h.stage.buf[:], h.buf[:h.pending])
		if h.pending+len(p) <= stageLen {
			h.pending += copy(h.stage.buf[h.pending:], p)
			return
		}
	}
	if h.stage != nil {
		h.absorbGroups(p)
	} else {
		h.absorbChunks(p)
	}
}

// absorbChunks is absorb without a stage. A full last chunk is hashed if another chunk comes before
// it in the same write.
func (h *Hasher) absorbChunks(p []byte) {
	if h.pending > 0 {
		p = p[copy(h.buf[h.pending:], p):]
		var buf [1 + guts.MaxLanes]guts.CV
		guts.One(&buf[1], h.buf[:], &h.key, h.offset+h.stack.Count, guts.ChunkFlags(h.mode, 0))
		h.stack.Push(buf[:], 1, 0, &h.key, h.mode)
		h.pending = 0
	}
	whole := len(p) / guts.ChunkLen * guts.ChunkLen
	if whole < len(p) || whole < 2*guts.ChunkLen || h.concurrent(whole) {
		whole = (len(p) - 1) / guts.ChunkLen * guts.ChunkLen
		h.hash(p[:whole])
		h.pending = copy(h.buf[:], p[whole:])
		return
	}
	var buf guts.Scratch
	var groups guts.Groups
	h.stack.AbsorbLast(&buf, &groups, p, &h.key, h.offset+h.stack.Count, h.mode)
}

// concurrent reports whether n bytes are enough for several goroutines.
func (h *Hasher) concurrent(n int) bool { return h.workers > 1 && n >= parallelMin }

// absorbGroups fills the stage up to a group, hashes that group and all that follow, and keeps the
// rest. If there is no rest, the last group stays in the queue, unmerged, for the root.
func (h *Hasher) absorbGroups(p []byte) {
	s := h.stage
	if h.pending > 0 {
		size := stageLen - int(h.count()%guts.MaxLanes)*guts.ChunkLen
		if size < h.pending {
			size = stageLen
		}
		p = p[copy(s.buf[h.pending:size], p):]
		h.hashQueued(s.buf[:size])
		h.pending = 0
	}
	if whole := len(p) / stageLen * stageLen; whole > 0 {
		if most := queueLen * guts.ChunkLen; whole > most {
			h.hash(p[:whole-stageLen])
			p, whole = p[whole-stageLen:], stageLen
		}
		h.hashQueued(p[:whole])
		p = p[whole:]
	}
	h.pending = copy(s.buf[:], p)
}

// hash hashes whole chunks that more input follows.
func (h *Hasher) hash(in []byte) {
	switch n := len(in); {
	case h.concurrent(n):
		h.hashParallel(in)
	case n > guts.MaxLanes*guts.ChunkLen:
		h.hashBatches(in)
	case n > 0:
		h.flush()
		var buf [1 + 2*guts.MaxLanes]guts.CV
		n := guts.Chunks(buf[1:], in, &h.key, h.offset+h.stack.Count, h.mode)
		h.stack.Push(buf[:], n, 0, &h.key, h.mode)
	}
}

// hashQueued hashes at most queueLen chunks, and leaves their chaining values in the queue.
func (h *Hasher) hashQueued(in []byte) {
	s := h.stage
	if s.queued+len(in)/guts.ChunkLen > queueLen {
		h.flush()
	}
	s.queued += guts.Chunks(s.queue[1+s.queued:], in, &h.key, h.offset+h.count(), h.mode)
}

// flush moves the queue to the stack. More input follows it.
func (h *Hasher) flush() {
	if s := h.stage; s != nil && s.queued > 0 {
		h.stack.Push(s.queue[:], s.queued, 0, &h.key, h.mode)
		s.queued = 0
	}
}

// hashBatches hashes any number of chunks that more input follows.
func (h *Hasher) hashBatches(in []byte) {
	h.flush()
	var buf guts.Scratch
	var groups guts.Groups
	h.stack.Absorb(&buf, &groups, in, &h.key, h.offset+h.stack.Count, h.mode)
}

// root is the root of the tree over all input so far. It does not change the hasher.
func (h *Hasher) root() guts.Node {
	if h.offset != 0 {
		panic("blake3: the hasher works on a subtree, which has a chaining value but no hash")
	}
	return h.node()
}

// node is the node over all input so far: the root of a whole input, or the top of a subtree.
func (h *Hasher) node() guts.Node {
	h.ready()
	if h.stack.Last != 0 {
		return h.stack.RootOfLast(&h.key, h.mode)
	}
	pending := h.buffer()[:h.pending]
	if h.count() == 0 {
		return guts.SubtreeNode(pending, &h.key, h.offset, h.mode)
	}
	if h.stage == nil {
		var buf [1 + guts.MaxLanes]guts.CV
		guts.One(&buf[1], pending, &h.key, h.offset+h.stack.Count, guts.ChunkFlags(h.mode, 0))
		return h.stack.Root(buf[:], 1, 0, &h.key, h.mode)
	}
	var buf [1 + queueLen + 2*guts.MaxLanes]guts.CV
	n := copy(buf[1:], h.stage.queue[1:1+h.stage.queued])
	if len(pending) > 0 {
		n += guts.Chunks(buf[1+n:], pending, &h.key, h.offset+h.count(), h.mode)
	}
	return h.stack.Root(buf[:], n, 0, &h.key, h.mode)
}

// Sum256 returns the 32-byte hash of the input so far. It does not change the hasher.
func (h *Hasher) Sum256() (sum [32]byte) {
	h.ready()
	if h.stage == nil && h.stack.Count == 0 && h.offset == 0 {
		guts.SumChunk(&sum, h.buf[:h.pending], &h.key, h.mode)
		return sum
	}
	n := h.root()
	return n.Root256()
}

// Sum appends the 32-byte hash of the input so far to b. It does not change the hasher.
func (h *Hasher) Sum(b []byte) []byte {
	sum := h.Sum256()
	return append(b, sum[:]...)
}

// Finalize fills out, of any length, with the hash of the input so far. It does not change the
// hasher.
func (h *Hasher) Finalize(out []byte) {
	n := h.root()
	fill(out, &n)
}

// Digest returns a reader for the hash output of the input so far. Later writes to the hasher do
// not change it.
func (h *Hasher) Digest() *Digest { return &OutputReader{guts.Output{Node: h.root()}} }
