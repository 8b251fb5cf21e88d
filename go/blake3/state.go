package blake3

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// Layout of a saved state: spec/blake3-state.md, version 1.
const (
	stateMagic   = "bullab3s"
	stateVersion = 1
	stateHead    = 64
	// maxState is the length of the longest state.
	maxState = stateHead + guts.OutLen*guts.MaxDepth + guts.ChunkLen - 1
)

// Errors of [Hasher.UnmarshalBinary], for use with [errors.Is].
var (
	ErrStateMagic    = errors.New("blake3: not a saved state: it does not begin with " + stateMagic)
	ErrStateVersion  = errors.New("blake3: the saved state has a version that this package does not know")
	ErrStateMode     = errors.New("blake3: the saved state has an unknown mode")
	ErrStateReserved = errors.New("blake3: a reserved field of the saved state is not zero")
	ErrStateLength   = errors.New("blake3: the saved state does not have the length that it states")
	ErrStateCount    = errors.New("blake3: the count of the saved state does not fit its length")
	ErrStateKey      = errors.New("blake3: the saved state of a plain hash has a key")
	ErrStateOffset   = errors.New("blake3: the input offset of the saved state is not a multiple of 1024")
	ErrStateRange    = errors.New("blake3: the saved state lies beyond the longest input")
	ErrStateSubtree  = errors.New("blake3: the saved state has absorbed more than its subtree holds")
)

var (
	_ encoding.BinaryMarshaler   = (*Hasher)(nil)
	_ encoding.BinaryAppender    = (*Hasher)(nil)
	_ encoding.BinaryUnmarshaler = (*Hasher)(nil)
)

// stateModes are the flags of the modes by their number in a state.
var stateModes = [...]uint32{0, guts.KeyedHash, guts.DeriveKeyMaterial}

// MarshalBinary returns the state of the hasher. Any implementation of the project can restore it.
// It contains the key of a keyed hasher and the last bytes of the input: protect it like these. The
// error is always nil.
func (h *Hasher) MarshalBinary() ([]byte, error) {
	return h.AppendBinary(make([]byte, 0, stateHead+guts.OutLen*20+guts.ChunkLen))
}

// AppendBinary appends what [Hasher.MarshalBinary] returns to b.
func (h *Hasher) AppendBinary(b []byte) ([]byte, error) {
	h.ready()
	stack, tail := h.finished()
	cvs := stack.CVs()
	start := len(b)
	b = append(b, stateMagic...)
	b = append(b, stateVersion, h.stateMode(), 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(stateHead+guts.OutLen*len(cvs)+len(tail)))
	b = binary.LittleEndian.AppendUint64(b, h.offset*guts.ChunkLen)
	b = binary.LittleEndian.AppendUint64(b, stack.Chunks()*guts.ChunkLen+uint64(len(tail)))
	key := h.key.Bytes()
	b = append(b, key[:]...)
	for i := range cvs {
		cv := cvs[i].Bytes()
		b = append(b, cv[:]...)
	}
	b = append(b, tail...)
	if len(b)-start > maxState {
		panic("blake3: a state longer than the longest state")
	}
	return b, nil
}

// finished is the stack of all chunks that are finished, whether they are hashed already or not,
// and the rest of the input.
func (h *Hasher) finished() (stack guts.Stack, tail []byte) {
	stack, tail = h.stack, h.buffer()[:h.pending]
	if s := h.stage; s != nil && s.queued > 0 {
		queue, n := s.queue, s.queued
		if h.pending == 0 {
			n--
		}
		last := queue[1+n]
		stack.Push(queue[:], n, 0, &h.key, h.mode)
		if h.pending == 0 {
			stack.PushLast(last, 1, &h.key, h.mode)
			return stack, nil
		}
	}
	if whole := (max(1, len(tail)) - 1) / guts.ChunkLen * guts.ChunkLen; whole > 0 {
		var buf guts.Scratch
		var groups guts.Groups
		stack.Absorb(&buf, &groups, tail[:whole], &h.key, h.offset+stack.Count, h.mode)
		tail = tail[whole:]
	}
	if len(tail) == guts.ChunkLen && stack.Count > 0 {
		var cv guts.CV
		guts.One(&cv, tail, &h.key, h.offset+stack.Count, guts.ChunkFlags(h.mode, 0))
		stack.PushLast(cv, 1, &h.key, h.mode)
		tail = nil
	}
	return stack, tail
}

func (h *Hasher) stateMode() byte {
	for i, mode := range stateModes {
		if h.mode == mode {
			return byte(i)
		}
	}
	panic("blake3: a hasher without a mode")
}

// UnmarshalBinary replaces the hasher with the one that was saved in b. An error does not change
// the hasher.
func (h *Hasher) UnmarshalBinary(b []byte) error {
	if len(b) < len(stateMagic) || string(b[:len(stateMagic)]) != stateMagic {
		return ErrStateMagic
	}
	if len(b) < stateHead {
		return fmt.Errorf("%w: %d bytes", ErrStateLength, len(b))
	}
	if b[8] != stateVersion {
		return fmt.Errorf("%w: %d", ErrStateVersion, b[8])
	}
	if int(b[9]) >= len(stateModes) {
		return fmt.Errorf("%w: %d", ErrStateMode, b[9])
	}
	if b[10] != 0 || b[11] != 0 {
		return ErrStateReserved
	}
	if length := binary.LittleEndian.Uint32(b[12:]); uint64(length) != uint64(len(b)) {
		return fmt.Errorf("%w: %d bytes, %d stated", ErrStateLength, len(b), length)
	}
	offset, count := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	if err := checkStateRange(offset, count, len(b)-stateHead); err != nil {
		return err
	}
	key := guts.CVFromBytes((*[32]byte)(b[32:]))
	mode := stateModes[b[9]]
	if mode == 0 && key != guts.IV {
		return ErrStateKey
	}
	*h = Hasher{key: key, mode: mode, workers: h.workers, offset: offset / guts.ChunkLen}
	h.stack = stateStack(count)
	b = b[stateHead:]
	cvs := h.stack.CVs()
	for i := range cvs {
		cvs[i] = guts.CVFromBytes((*[32]byte)(b))
		b = b[guts.OutLen:]
	}
	h.pending = copy(h.buf[:], b)
	return nil
}

// stateStack is the stack of a state after count bytes, with zero chaining values. A single chunk
// is not finished, because it may be the root; every other chunk is finished as soon as it is full.
func stateStack(count uint64) (stack guts.Stack) {
	switch {
	case count <= guts.ChunkLen:
	case count%guts.ChunkLen == 0:
		stack.SetShape(count / guts.ChunkLen)
	default:
		stack.Count = count / guts.ChunkLen
	}
	return stack
}

// checkStateRange checks the two positions of a state with body bytes after its head.
func checkStateRange(offset, count uint64, body int) error {
	if offset%guts.ChunkLen != 0 {
		return fmt.Errorf("%w: %d", ErrStateOffset, offset)
	}
	if count > math.MaxUint64-offset {
		return ErrStateRange
	}
	stack := stateStack(count)
	if uint64(body) != guts.OutLen*uint64(len(stack.CVs()))+count-stack.Chunks()*guts.ChunkLen {
		return fmt.Errorf("%w: %d", ErrStateCount, count)
	}
	if count > subtreeLen(offset/guts.ChunkLen) {
		return ErrStateSubtree
	}
	return nil
}

// subtreeLen is the length in bytes of the largest subtree that begins at the given chunk.
func subtreeLen(chunk uint64) uint64 {
	if chunk == 0 {
		return math.MaxUint64
	}
	return guts.ChunkLen << bits.TrailingZeros64(chunk)
}
