package blake3

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
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
	if len(file.Cases) < 40 {
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

// A hasher that is saved and restored anywhere must end as one that is not.
func TestStateRoundTrip(t *testing.T) {
	in := vectors.Pattern(300000)
	random := rand.New(rand.NewPCG(4, 4))
	for name, make := range modes(t) {
		for range 60 {
			n := random.IntN(len(in))
			cut := random.IntN(n + 1)
			h, want := make(), make()
			writeAll(h, in[:cut], 1+random.IntN(20000))
			state, err := h.AppendBinary([]byte("before"))
			if err != nil || !bytes.HasPrefix(state, []byte("before")) {
				t.Fatal(err)
			}
			restored := New()
			if err := restored.UnmarshalBinary(state[6:]); err != nil {
				t.Fatal(err)
			}
			writeAll(restored, in[cut:n], 1+random.IntN(20000))
			want.Write(in[:n])
			if restored.Sum256() != want.Sum256() {
				t.Fatalf("%s of %d bytes, saved after %d: wrong", name, n, cut)
			}
		}
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
	h := New()
	h.Write(vectors.Pattern(3000))
	state, err := h.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add(state[:64])
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
	for name, call := range map[string]func(){
		"a longer subtree":    func() { h.WriteString("x") },
		"a hash of a subtree": func() { h.Sum256() },
		"a late offset":       func() { h.SetInputOffset(0) },
		"an odd offset":       func() { New().SetInputOffset(5) },
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
