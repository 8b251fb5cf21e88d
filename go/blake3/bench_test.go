package blake3

import (
	"fmt"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/vectors"
)

func BenchmarkSum256(b *testing.B) {
	for _, n := range []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20} {
		in := vectors.Pattern(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				Sum256(in)
			}
		})
	}
}

func BenchmarkSumMany(b *testing.B) {
	for _, n := range []int{64, 1024} {
		inputs := manyInputs(64, func(int) int { return n })
		out := make([][32]byte, len(inputs))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n * len(inputs)))
			for b.Loop() {
				SumMany(inputs, out)
			}
		})
	}
}
