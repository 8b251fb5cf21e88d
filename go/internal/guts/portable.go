package guts

import "encoding/binary"

// compress is the compression function (BLAKE3 paper, section 2.2) with all sixteen words of
// output.
func compress(out *[16]uint32, cv *CV, m *[16]uint32, counter uint64, blockLen, flags uint32) {
	*out = [16]uint32{
		cv[0], cv[1], cv[2], cv[3], cv[4], cv[5], cv[6], cv[7],
		IV[0], IV[1], IV[2], IV[3], uint32(counter), uint32(counter >> 32), blockLen, flags,
	}
	rounds(out, m)
	for i := range 8 {
		out[i] ^= out[i+8]
		out[i+8] ^= cv[i]
	}
}

// loadBlock reads up to 64 bytes as sixteen words, with zeros after them.
func loadBlock(m *[16]uint32, b []byte) {
	if len(b) < BlockLen {
		var padded [BlockLen]byte
		copy(padded[:], b)
		b = padded[:]
	}
	b = b[:BlockLen]
	for i := range m {
		m[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
}

// onePortable is One in plain Go.
func onePortable(out *CV, in []byte, key *CV, counter uint64, f Flags) {
	var v, m [16]uint32
	cv := *key
	flags := f.All | f.First
	for len(in) > BlockLen {
		loadBlock(&m, in)
		compress(&v, &cv, &m, counter, BlockLen, flags)
		cv = CV(v[:8])
		flags = f.All
		in = in[BlockLen:]
	}
	loadBlock(&m, in)
	compress(&v, &cv, &m, counter, uint32(len(in)), flags|f.Last)
	*out = CV(v[:8])
}

// parentPortable is the chaining value of a parent in plain Go.
func parentPortable(out, left, right, key *CV, flags uint32) {
	var v, m [16]uint32
	copy(m[:8], left[:])
	copy(m[8:], right[:])
	compress(&v, key, &m, 0, BlockLen, flags)
	*out = CV(v[:8])
}

func chunksPortable(cvs []CV, in []byte, key *CV, counter uint64, flags uint32) {
	f := ChunkFlags(flags, 0)
	n := chunkCount(in)
	for i := range n {
		onePortable(&cvs[i], chunkAt(in, i), key, counter+uint64(i), f)
	}
}

func parentsPortable(dst, src []CV, pairs int, key *CV, flags uint32) {
	for i := range pairs {
		parentPortable(&dst[i], &src[2*i], &src[2*i+1], key, flags)
	}
}

// sumParentPortable is sumParent in Go.
func sumParentPortable(out *[OutLen]byte, children *[2]CV, key *CV, flags uint32) {
	var cv CV
	parentPortable(&cv, &children[0], &children[1], key, flags)
	*out = cv.Bytes()
}

func xofPortable(out []byte, n *Node, counter uint64) {
	var v [16]uint32
	for len(out) > 0 {
		compress(&v, &n.CV, &n.Block, counter, n.Len, n.Flags|Root)
		for i, w := range v {
			binary.LittleEndian.PutUint32(out[4*i:], w)
		}
		out = out[BlockLen:]
		counter++
	}
}

func sumChunkPortable(out *[OutLen]byte, in []byte, key *CV, mode uint32) {
	var cv CV
	onePortable(&cv, in, key, 0, ChunkFlags(mode, Root))
	*out = cv.Bytes()
}

func root256Portable(out *[OutLen]byte, n *Node) {
	var block [BlockLen]byte
	xofPortable(block[:], n, 0)
	copy(out[:], block[:])
}
