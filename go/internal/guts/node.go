package guts

import "encoding/binary"

// Node is the input of one compression, which gives a chaining value, or root output of any length.
type Node struct {
	CV      CV
	Block   [16]uint32
	Counter uint64
	Len     uint32 // bytes in Block
	Flags   uint32
}

// ChunkNode is the last block of a chunk, after absorbing its other blocks. The chunk has at most
// ChunkLen bytes.
func ChunkNode(in []byte, key *CV, counter uint64, flags uint32) Node {
	n := Node{CV: *key, Counter: counter, Flags: flags | ChunkStart | ChunkEnd}
	if len(in) > BlockLen {
		whole := (len(in) - 1) / BlockLen * BlockLen
		One(&n.CV, in[:whole], key, counter, Flags{All: flags, First: ChunkStart})
		n.Flags = flags | ChunkEnd
		in = in[whole:]
	}
	n.Len = uint32(len(in))
	loadBlock(&n.Block, in)
	return n
}

// ParentNode is the parent of two chaining values. flags is the mode alone.
func ParentNode(left, right, key *CV, flags uint32) Node {
	n := Node{CV: *key, Len: BlockLen, Flags: flags | ParentFlag}
	copy(n.Block[:8], left[:])
	copy(n.Block[8:], right[:])
	return n
}

// ChainingValue finishes a node that is not the root.
func (n *Node) ChainingValue() CV {
	var v [16]uint32
	compress(&v, &n.CV, &n.Block, n.Counter, n.Len, n.Flags)
	return CV(v[:8])
}

// Compress is all sixteen words of output of the node, with the flags that it has.
func (n *Node) Compress() (out [16]uint32) {
	compress(&out, &n.CV, &n.Block, n.Counter, n.Len, n.Flags)
	return out
}

// Root256 is the first 32 bytes of root output.
func (n *Node) Root256() (out [OutLen]byte) {
	root256(&out, n)
	return out
}

// Root writes root output from block number counter on (BLAKE3 paper, section 2.6). The length of
// out is a multiple of BlockLen.
func (n *Node) Root(out []byte, counter uint64) {
	xof(out, n, counter)
}

// Bytes is the chaining value in its external form: little-endian words.
func (cv *CV) Bytes() (out [32]byte) {
	for i, w := range cv {
		binary.LittleEndian.PutUint32(out[4*i:], w)
	}
	return out
}

// CVFromBytes reads a key or a chaining value of 32 bytes.
func CVFromBytes(b *[32]byte) (cv CV) {
	for i := range cv {
		cv[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return cv
}
