package blake3

import (
	"bytes"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/reference"
)

// Any input, in any writes, must give what the reference gives.
func FuzzHasher(f *testing.F) {
	f.Add([]byte("abc"), uint16(1), uint16(0))
	f.Add(bytes.Repeat([]byte{7}, 5000), uint16(1000), uint16(77))
	f.Fuzz(func(t *testing.T, in []byte, step, skip uint16) {
		h := New()
		writeAll(h, in, int(step)+1)
		got := make([]byte, 100)
		r := h.Digest()
		r.SetPosition(uint64(skip))
		r.Read(got)
		if want := reference.Sum(reference.IV, in, 0, uint64(skip), len(got)); !bytes.Equal(got, want) {
			t.Errorf("%d bytes in writes of %d: %x, want %x", len(in), int(step)+1, got, want)
		}
	})
}

func FuzzSumMany(f *testing.F) {
	f.Add([]byte("0123456789"), []byte{1, 0, 5})
	f.Fuzz(func(t *testing.T, in, lengths []byte) {
		var inputs [][]byte
		for i, n := range lengths {
			from := min(len(in), i)
			inputs = append(inputs, in[from:min(len(in), from+5*int(n))])
		}
		out := make([][32]byte, len(inputs))
		SumMany(inputs, out)
		for i, in := range inputs {
			if out[i] != referenceSum(in) {
				t.Errorf("input %d of %d bytes: wrong", i, len(in))
			}
		}
	})
}
