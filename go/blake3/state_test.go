package blake3

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/guts"
	"github.com/bulla-dev/bulla/go/internal/reference"
	"github.com/bulla-dev/bulla/go/internal/vectors"
)

func TestStateVectors(t *testing.T) {
	var file struct {
		Cases []struct {
			Mode               string
			Offset, Count, Len int
			Head, Hash         string
		}
	}
	vectors.Read(t, "blake3-state.json", &file)
	if len(file.Cases) < 80 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	eachKernel(t, func(t *testing.T) {
		for _, c := range file.Cases {
			for _, step := range []int{7, 1024, 5000, 1 << 20} {
				h := modes(t)[c.Mode]()
				if c.Offset > 0 {
					h.SetInputOffset(uint64(c.Offset))
				}
				writeAll(h, vectors.Pattern(c.Count), step)
				state, err := h.MarshalBinary()
				if err != nil || len(state) != c.Len || hex.EncodeToString(state[:64]) != c.Head {
					t.Fatalf("%s of %d bytes in writes of %d: %d bytes, %x, %v", c.Mode, c.Count, step, len(state), state[:64], err)
				}
				if sum := Sum256(state); hex.EncodeToString(sum[:]) != c.Hash {
					t.Errorf("%s of %d bytes in writes of %d: the state is wrong", c.Mode, c.Count, step)
				}
			}
		}
	})
}

// roundTrip checks that the state of h restores h after in[:at], and that the restored hasher
// continues like h.
func roundTrip(t *testing.T, mode string, h *Hasher, in []byte, at, step int) {
	t.Helper()
	state, err := h.AppendBinary([]byte("before"))
	if err != nil || !bytes.HasPrefix(state, []byte("before")) {
		t.Fatal(err)
	}
	state = state[len("before"):]
	restored := New()
	if err := restored.UnmarshalBinary(state); err != nil {
		t.Fatalf("%s, saved after %d: %v", mode, at, err)
	}
	whole := modes(t)[mode]()
	whole.Write(in[:at])
	if restored.Write(nil); restored.Sum256() != whole.Sum256() || restored.ChainingValue() != whole.ChainingValue() {
		t.Fatalf("%s, restored after %d: wrong at once", mode, at)
	}
	if again, err := restored.MarshalBinary(); err != nil || !bytes.Equal(again, state) {
		t.Fatalf("%s, restored after %d: saved again, it is %x, %v", mode, at, again, err)
	}
	reset := restored.Clone()
	reset.Reset()
	if reset.Write(in[:at]); reset.Sum256() != whole.Sum256() {
		t.Fatalf("%s, restored after %d and reset: wrong", mode, at)
	}
	clone := restored.Clone()
	writeAll(restored, in[at:], step)
	whole.Write(in[at:])
	if restored.Sum256() != whole.Sum256() {
		t.Fatalf("%s of %d bytes, saved after %d: wrong", mode, len(in), at)
	}
	if clone.Write(in[at:]); clone.Sum256() != whole.Sum256() {
		t.Fatalf("%s of %d bytes, saved after %d, cloned: wrong", mode, len(in), at)
	}
}

// A hasher that is saved and restored anywhere must give the same result as one that is not.
func TestStateRoundTrip(t *testing.T) {
	in := vectors.Pattern(300000)
	eachKernel(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(4, 4))
		for mode, make := range modes(t) {
			for range 60 {
				n := random.IntN(len(in))
				cut := random.IntN(n + 1)
				h := make()
				writeAll(h, in[:cut], 1+random.IntN(20000))
				roundTrip(t, mode, h, in[:n], cut, 1+random.IntN(20000))
			}
		}
	})
}

// At the end of every chunk to four past two groups of the widest kernel: there the last chunk is
// finished, and the last subtree is stored as its halves.
func TestStateRoundTripAtChunks(t *testing.T) {
	in := vectors.Pattern(70 * guts.ChunkLen)
	eachKernel(t, func(t *testing.T) {
		for chunks := range 2*guts.MaxLanes + 5 {
			for _, step := range []int{1000, guts.ChunkLen, len(in)} {
				for _, more := range []int{0, 1, 1024, 1025, 32 * 1024} {
					at := chunks * guts.ChunkLen
					h := New()
					writeAll(h, in[:at], step)
					roundTrip(t, "hash", h, in[:at+more], at, step)
				}
			}
		}
	})
}

// restoredAt is a hasher restored from the state after the input given.
func restoredAt(t *testing.T, in []byte) *Hasher {
	t.Helper()
	h := New()
	h.Write(in)
	state, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	restored := New()
	if err := restored.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	return restored
}

// All ways of absorbing input begin with the unmerged last subtree of a restored state.
func TestStateGoesOn(t *testing.T) {
	in := vectors.Pattern(4 << 20)
	path := filepath.Join(t.TempDir(), "rest")
	const at = 1 << 20 // where segments of a file begin
	if err := os.WriteFile(path, in[at:], 0o600); err != nil {
		t.Fatal(err)
	}
	want := Sum256(in)
	for name, more := range map[string]func(h *Hasher) error{
		"by goroutines": func(h *Hasher) error { h.SetConcurrency(4); _, err := h.Write(in[at:]); return err },
		"from a reader": func(h *Hasher) error {
			_, err := h.WriteReader(t.Context(), bytes.NewReader(in[at:]), nil)
			return err
		},
		"from a file": func(h *Hasher) error {
			_, err := h.WriteFile(t.Context(), path, &ReadOptions{Concurrency: 4})
			return err
		},
	} {
		h := restoredAt(t, in[:at])
		if err := more(h); err != nil || h.Sum256() != want {
			t.Errorf("%s: wrong, %v", name, err)
		}
	}
}

// The longest state: as many subtrees as there can be, and all but one byte of a chunk.
func TestLongestState(t *testing.T) {
	const longest = 2815
	for _, c := range []struct {
		count uint64
		len   int
	}{
		{math.MaxUint64, longest},
		{math.MaxUint64 - 1023, longest - 1023},
		{math.MaxUint64 - 2047, longest - 1023},
		{1 << 63, 64 + 2*32},
	} {
		state := bytes.Repeat([]byte{7}, c.len)
		copy(state, "bullab3s\x01\x01\x00\x00")
		binary.LittleEndian.PutUint32(state[12:], uint32(c.len))
		binary.LittleEndian.PutUint64(state[16:], 0)
		binary.LittleEndian.PutUint64(state[24:], c.count)
		h := New()
		if err := h.UnmarshalBinary(state); err != nil {
			t.Fatalf("%d bytes absorbed: %v", c.count, err)
		}
		if again, err := h.MarshalBinary(); err != nil || !bytes.Equal(again, state) {
			t.Errorf("%d bytes absorbed: read and written again: %x, %v", c.count, again, err)
		}
		h.Sum256()
	}
}

func TestStateErrors(t *testing.T) {
	h := New()
	h.Write(vectors.Pattern(5000))
	good, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	set := func(at int, value ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], value)
		return b
	}
	offset := func(o, count uint64) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint64(b[16:], o)
		binary.LittleEndian.PutUint64(b[24:], count)
		return b
	}
	// 2048 bytes as one chaining value and a whole chunk of input.
	unfinished := bytes.Clone(good[:64+32+1024])
	binary.LittleEndian.PutUint32(unfinished[12:], uint32(len(unfinished)))
	binary.LittleEndian.PutUint64(unfinished[24:], 2048)
	cases := []struct {
		name  string
		state []byte
		want  error
	}{
		{"empty", nil, ErrStateMagic},
		{"short magic", good[:5], ErrStateMagic},
		{"magic", set(0, 'B'), ErrStateMagic},
		{"head cut", good[:40], ErrStateLength},
		{"version", set(8, 2), ErrStateVersion},
		{"mode", set(9, 3), ErrStateMode},
		{"reserved", set(10, 1), ErrStateReserved},
		{"reserved, second byte", set(11, 1), ErrStateReserved},
		{"cut", good[:len(good)-1], ErrStateLength},
		{"longer", append(bytes.Clone(good), 0), ErrStateLength},
		{"count", set(24, 0), ErrStateCount},
		{"an unfinished last chunk", unfinished, ErrStateCount},
		{"key", set(32, 0), ErrStateKey},
		{"odd offset", offset(1000, 5000), ErrStateOffset},
		{"beyond", offset(1<<64-1024, 5000), ErrStateRange},
		{"subtree", offset(1024, 5000), ErrStateSubtree},
	}
	for _, c := range cases {
		got := New()
		got.WriteString("abc")
		before := got.Sum256()
		if err := got.UnmarshalBinary(c.state); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if got.Sum256() != before {
			t.Errorf("%s: the hasher has changed", c.name)
		}
	}
}

func FuzzState(f *testing.F) {
	for _, n := range []int{1024, 2048, 3000, 3072} {
		h := New()
		h.Write(vectors.Pattern(n))
		state, err := h.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(state)
		f.Add(state[:64])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h := New()
		if h.UnmarshalBinary(b) != nil {
			return
		}
		again, err := h.MarshalBinary()
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("read and written again: %x, %v", again, err)
		}
	})
}

func TestSubtree(t *testing.T) {
	in := vectors.Pattern(64 * guts.ChunkLen)
	h := New()
	h.SetInputOffset(64 * guts.ChunkLen)
	writeAll(h, in, 1500)
	want := guts.CV(reference.ChainingValue(reference.IV, in, 64, 0))
	if h.ChainingValue() != want.Bytes() {
		t.Error("the chaining value is wrong")
	}
	state, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	restored := New()
	if err := restored.UnmarshalBinary(state); err != nil || restored.ChainingValue() != want.Bytes() {
		t.Errorf("the restored chaining value is wrong, %v", err)
	}
	for name, call := range map[string]func(){
		"a longer subtree":                func() { h.WriteString("x") },
		"a longer restored subtree":       func() { restored.WriteString("x") },
		"a hash of a subtree":             func() { h.Sum256() },
		"a late offset":                   func() { h.SetInputOffset(0) },
		"a late offset, after a restored": func() { restored.SetInputOffset(0) },
		"an odd offset":                   func() { New().SetInputOffset(5) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}
