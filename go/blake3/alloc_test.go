package blake3

import (
	"testing"

	"github.com/bulla-dev/bulla/go/internal/vectors"
)

// Serial paths allocate nothing. Long input in small writes allocates one buffer for each hasher.
func TestAllocations(t *testing.T) {
	in := vectors.Pattern(300 << 10)
	key := []byte(testKey)
	var sum [32]byte
	out := make([]byte, 4000)
	reused := New()
	cases := []struct {
		name string
		want float64
		call func()
	}{
		{"Sum256 of 64 bytes", 0, func() { sum = Sum256(in[:64]) }},
		{"Sum256 of 1000 bytes", 0, func() { sum = Sum256(in[:1000]) }},
		{"Sum256 of 9000 bytes", 0, func() { sum = Sum256(in[:9000]) }},
		{"Sum256 of 300 KiB", 0, func() { sum = Sum256(in) }},
		{"Sum of 2000 bytes, 4000 bytes of output", 0, func() { Sum(in[:2000], out) }},
		{"SumKeyed", 0, func() { sum = SumKeyed((*[32]byte)(key), in[:5000]) }},
		{"DeriveKey", 0, func() { DeriveKey(testContext, key, out[:32]) }},
		{"a new hasher, 1000 bytes", 0, func() { h := New(); h.Write(in[:1000]); sum = h.Sum256() }},
		{"a new hasher, 300 KiB in one write", 0, func() { h := New(); h.Write(in); sum = h.Sum256() }},
		{"a new keyed hasher, 1 KiB", 0, func() {
			h, err := NewKeyed(key)
			if err != nil {
				panic(err)
			}
			h.Write(in[:1024])
			h.Sum(out[:0])
		}},
		{"a new hasher of key material", 0, func() { h := NewDeriveKey(testContext); h.Write(key); h.Finalize(out) }},
		{"a hasher used again, small writes", 0, func() { reused.Reset(); writeAll(reused, in, 100); sum = reused.Sum256() }},
		{"a new hasher, small writes", 1, func() { h := New(); writeAll(h, in, 100); sum = h.Sum256() }},
		{"a new hasher, writes of 32 KiB", 0, func() { h := New(); writeAll(h, in[:9<<15], 32<<10); sum = h.Sum256() }},
	}
	for _, c := range cases {
		c.call()
		if got := testing.AllocsPerRun(20, c.call); got != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
	}
	_ = sum
}

func writeAll(h *Hasher, in []byte, step int) {
	for at := 0; at < len(in); at += step {
		h.Write(in[at:min(at+step, len(in))])
	}
}
