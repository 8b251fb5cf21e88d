package blake3

import "github.com/bulla-dev/bulla/go/internal/guts"

// SumMany sets out[i] to the 32-byte hash of inputs[i]. Short inputs, whatever their lengths, are hashed side by side in
// the lanes of the widest kernel, several times as fast as one call each. It panics if out is
// shorter than inputs.
func SumMany(inputs [][]byte, out [][32]byte) {
	out = out[:len(inputs)]
	guts.SumMany(inputs, out, &guts.IV, 0)
	for i, in := range inputs {
		if len(in) > guts.ChunkLen {
			out[i] = Sum256(in)
		}
	}
}

// SumManyKeyed is [SumMany] in the keyed mode.
func SumManyKeyed(key *[KeySize]byte, inputs [][]byte, out [][32]byte) {
	out = out[:len(inputs)]
	words := guts.CVFromBytes(key)
	guts.SumMany(inputs, out, &words, guts.KeyedHash)
	for i, in := range inputs {
		if len(in) > guts.ChunkLen {
			out[i] = SumKeyed(key, in)
		}
	}
}
