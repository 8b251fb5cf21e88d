//go:build linux

package blake3

import (
	"os"
	"syscall"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/guts"
	"github.com/bulla-dev/bulla/go/internal/vectors"
)

// The largest pages of today's systems.
const page = 64 << 10

// beforeGuard returns a page of input. Behind it is a page that nobody can read: a kernel that
// reads one byte too many stops the process.
func beforeGuard(t *testing.T) []byte {
	pages, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(pages); err != nil {
			t.Error(err)
		}
	})
	copy(pages, vectors.Pattern(page))
	if err := syscall.Mprotect(pages[page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return pages[:page:page]
}

// stride is the distance between the lengths that a test tries: an emulator is too slow for all of
// them.
func stride(t *testing.T) int {
	if os.Getenv(expectVariable) == "" {
		return 1
	}
	t.Log("on an emulated processor: one length of 61")
	return 61
}

func TestReadsNothingBehindInputsOfAnyLength(t *testing.T) {
	in := beforeGuard(t)
	const most = 40 << 10
	keys := [3]guts.CV{guts.IV, guts.CVFromBytes((*[32]byte)([]byte(testKey))), contextKey(testContext)}
	modes := [3]uint32{0, guts.KeyedHash, guts.DeriveKeyMaterial}
	sum := func(n int) (sum [32]byte) {
		sumInto(&sum, in[page-n:], &keys[n%3], modes[n%3])
		return sum
	}
	want := make([][32]byte, 0, most+1) // by the first kernel
	each := stride(t)
	eachKernel(t, func(t *testing.T) {
		for n := 0; n <= most; n += each {
			got := sum(n)
			if len(want) == n/each {
				want = append(want, got)
			}
			if got != want[n/each] {
				t.Fatalf("%d bytes: wrong", n)
			}
		}
	})
}

func TestSumManyReadsNothingBehindInputs(t *testing.T) {
	in, each := beforeGuard(t), stride(t)
	var inputs [21][]byte
	var out [len(inputs)][32]byte
	eachKernel(t, func(t *testing.T) {
		for n := 0; n <= guts.ChunkLen; n += each {
			for _, more := range []int{0, 1, 67} { // inputs of one length, and of as many lengths as inputs
				for i := range inputs {
					inputs[i] = in[page-n-i*more:]
				}
				SumMany(inputs[:], out[:])
				for i, in := range inputs {
					if out[i] != Sum256(in) {
						t.Fatalf("input %d of %d bytes: wrong", i, len(in))
					}
				}
			}
		}
	})
}
