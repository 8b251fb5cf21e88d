package blake3

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/vectors"
)

// manyInputs are n inputs of lengths chosen by the function.
func manyInputs(n int, length func(i int) int) [][]byte {
	all := vectors.Pattern(1 << 16)
	inputs := make([][]byte, n)
	for i := range inputs {
		k := length(i)
		inputs[i] = all[i : i+k : i+k]
	}
	return inputs
}

func checkMany(t *testing.T, inputs [][]byte) {
	t.Helper()
	out := make([][32]byte, len(inputs))
	SumMany(inputs, out)
	key := (*[32]byte)([]byte(testKey))
	keyed := make([][32]byte, len(inputs))
	SumManyKeyed(key, inputs, keyed)
	for i, in := range inputs {
		if out[i] != referenceSum(in) || keyed[i] != referenceSumKeyed(in) {
			t.Fatalf("input %d of %d, %d bytes: wrong", i, len(inputs), len(in))
		}
	}
}

func TestSumManyCounts(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for n := range 70 {
			for _, length := range []int{0, 1, 63, 64, 65, 128, 1000, 1023, 1024, 1025} {
				checkMany(t, manyInputs(n, func(int) int { return length }))
			}
		}
	})
}

func TestSumManyMixedLengths(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(6, 6))
		for _, most := range []int{2, 65, 200, 1025, 1100, 20000} {
			for range 40 {
				checkMany(t, manyInputs(r.IntN(60), func(int) int { return r.IntN(most) }))
			}
		}
		checkMany(t, manyInputs(1026, func(i int) int { return i }))
	})
}

func TestSumManyAllocatesNothing(t *testing.T) {
	inputs := manyInputs(100, func(i int) int { return 11 * i })
	out := make([][32]byte, len(inputs))
	if n := testing.AllocsPerRun(10, func() { SumMany(inputs, out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// SumMany must not write beyond the length of out, whatever its capacity is.
func TestSumManyNeedsRoom(t *testing.T) {
	key := (*[32]byte)([]byte(testKey))
	for name, call := range map[string]func(inputs [][]byte, out [][32]byte){
		"SumMany":      SumMany,
		"SumManyKeyed": func(inputs [][]byte, out [][32]byte) { SumManyKeyed(key, inputs, out) },
	} {
		for _, inputs := range []int{1, 2, 40} {
			sums := make([][32]byte, inputs)
			message := func() (message string) {
				defer func() { message = fmt.Sprint(recover()) }()
				call(make([][]byte, inputs), sums[:inputs-1])
				return ""
			}()
			if want := fmt.Sprintf("%d inputs", inputs); !strings.Contains(message, want) {
				t.Errorf("%s of %d inputs, out one too short: %s", name, inputs, message)
			}
			if slices.ContainsFunc(sums, func(sum [32]byte) bool { return sum != [32]byte{} }) {
				t.Errorf("%s of %d inputs wrote to an out that is one too short", name, inputs)
			}
		}
	}
}

// If out is longer than inputs, SumMany does not change the rest of out.
func TestSumManyLeavesTheRest(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for _, length := range []int{10, 1025} {
			for n := range 40 {
				out := make([][32]byte, n+20)
				SumMany(manyInputs(n, func(int) int { return length }), out)
				if slices.ContainsFunc(out[n:], func(sum [32]byte) bool { return sum != [32]byte{} }) {
					t.Errorf("%d inputs of %d bytes: wrote more sums than inputs", n, length)
				}
			}
		}
	})
}
