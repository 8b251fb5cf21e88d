package blake3

import (
	"fmt"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// SumMany sets out[i] to the 32-byte hash of inputs[i]. It hashes short inputs of any length at
// once, in the lanes of the widest kernel, several times as fast as one call each. If out is
// shorter than inputs, it panics before it writes anything.
func SumMany(inputs [][]byte, out [][32]byte) {
	checkRoom(len(inputs), len(out))
	out = out[:len(inputs)]
	guts.SumMany(inputs, out, &guts.IV, 0)
	for i, in := range inputs {
		if len(in) > guts.ChunkLen {
			out[i] = Sum256(in)
		}
	}
}

// SumManyKeyed is like [SumMany], in the keyed mode.
func SumManyKeyed(key *[KeySize]byte, inputs [][]byte, out [][32]byte) {
	checkRoom(len(inputs), len(out))
	out = out[:len(inputs)]
	words := guts.CVFromBytes(key)
	guts.SumMany(inputs, out, &words, guts.KeyedHash)
	for i, in := range inputs {
		if len(in) > guts.ChunkLen {
			out[i] = SumKeyed(key, in)
		}
	}
}

// checkRoom panics if there are fewer sums than inputs. A slice expression would not panic: it
// reaches up to the capacity of out, where other data may be.
func checkRoom(inputs, sums int) {
	if sums < inputs {
		panic(fmt.Sprintf("blake3: out has room for %d sums, and there are %d inputs: make it as long as inputs", sums, inputs))
	}
}
