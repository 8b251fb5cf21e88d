package guts

// chunkCount is the number of chunks of an input; an empty one has one chunk.
func chunkCount(in []byte) int { return max(1, (len(in)+ChunkLen-1)/ChunkLen) }

// chunkAt is chunk i of an input.
func chunkAt(in []byte, i int) []byte { return in[i*ChunkLen : min(len(in), (i+1)*ChunkLen)] }

// sumEach is SumMany without lanes.
func sumEach(inputs [][]byte, out [][OutLen]byte, key *CV, mode uint32) {
	for i, in := range inputs {
		if len(in) <= ChunkLen {
			SumChunk(&out[i], in, key, mode)
		}
	}
}
