//go:build purego || !(amd64 || arm64)

package guts

// Available lists the kernels of this machine, the best first.
func Available() []Kernel { return []Kernel{Portable} }

// One is the chaining value of a message of at most ChunkLen bytes: a chunk, or the block of a
// parent.
func One(out *CV, in []byte, key *CV, counter uint64, f Flags) {
	onePortable(out, in, key, counter, f)
}

// Parent is the chaining value of a parent. flags are all its flags.
func Parent(out, left, right, key *CV, flags uint32) {
	parentPortable(out, left, right, key, flags)
}

// Chunks writes the chaining values of the chunks of in, the first of which has number counter, and
// returns how many there are. The last chunk may be short. cvs has MaxLanes spare elements.
func Chunks(cvs []CV, in []byte, key *CV, counter uint64, flags uint32) int {
	chunksPortable(cvs, in, key, counter, flags)
	return chunkCount(in)
}

// Parents writes the chaining values of the parents of src[0] and src[1], src[2] and src[3], and so
// on. dst may be the same memory as src, or begin one element after it. flags is the mode alone.
func Parents(dst, src []CV, pairs int, key *CV, flags uint32) {
	parentsPortable(dst, src, pairs, key, flags|ParentFlag)
}

// SumChunk is the hash of a message of at most ChunkLen bytes.
func SumChunk(out *[OutLen]byte, in []byte, key *CV, mode uint32) {
	sumChunkPortable(out, in, key, mode)
}

func xof(out []byte, n *Node, counter uint64) { xofPortable(out, n, counter) }

func root256(out *[OutLen]byte, n *Node) { root256Portable(out, n) }

// SumMany sets out[i] to the hash of inputs[i], if that has at most ChunkLen bytes.
func SumMany(inputs [][]byte, out [][OutLen]byte, key *CV, mode uint32) {
	sumEach(inputs, out, key, mode)
}

func sumParent(out *[OutLen]byte, children *[2]CV, key *CV, flags uint32) {
	sumParentPortable(out, children, key, flags)
}
