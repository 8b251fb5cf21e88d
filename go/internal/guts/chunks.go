package guts

// chunkCount is the number of chunks of head and in together; head is whole chunks, and an empty input has one chunk.
func chunkCount(head, in []byte) int {
	return max(1, len(head)/ChunkLen+(len(in)+ChunkLen-1)/ChunkLen)
}

// chunkAt is chunk i of head and in together.
func chunkAt(head, in []byte, i int) []byte {
	if h := len(head) / ChunkLen; i < h {
		return head[i*ChunkLen : (i+1)*ChunkLen]
	} else {
		i -= h
	}
	return in[i*ChunkLen : min(len(in), (i+1)*ChunkLen)]
}

// sumEach is SumMany without lanes.
func sumEach(inputs [][]byte, out [][OutLen]byte, key *CV, mode uint32) {
	for i, in := range inputs {
		if len(in) <= ChunkLen {
			SumChunk(&out[i], in, key, mode)
		}
	}
}
