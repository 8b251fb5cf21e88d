// Package reference is a slow and obvious BLAKE3, written from the paper. Only tests use it: they
// compare everything else with it.
package reference

import (
	"encoding/binary"
	"math/bits"
)

// The flags of the modes (BLAKE3 paper, table 3).
const (
	Hash              = 0
	KeyedHash         = 1 << 4
	DeriveKeyContext  = 1 << 5
	DeriveKeyMaterial = 1 << 6
)

const (
	chunkStart = 1 << 0
	chunkEnd   = 1 << 1
	parent     = 1 << 2
	root       = 1 << 3
)

// IV is the key of the plain hash.
var IV = [8]uint32{
	0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
}

var permutation = [16]int{2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8}

func g(v *[16]uint32, a, b, c, d int, x, y uint32) {
	v[a] += v[b] + x
	v[d] = bits.RotateLeft32(v[d]^v[a], -16)
	v[c] += v[d]
	v[b] = bits.RotateLeft32(v[b]^v[c], -12)
	v[a] += v[b] + y
	v[d] = bits.RotateLeft32(v[d]^v[a], -8)
	v[c] += v[d]
	v[b] = bits.RotateLeft32(v[b]^v[c], -7)
}

// Compress is the compression function.
func Compress(h [8]uint32, m [16]uint32, counter uint64, length, flags uint32) [16]uint32 {
	var v [16]uint32
	copy(v[:8], h[:])
	copy(v[8:12], IV[:4])
	v[12], v[13], v[14], v[15] = uint32(counter), uint32(counter>>32), length, flags
	for range 7 {
		for i := range 4 {
			g(&v, i, 4+i, 8+i, 12+i, m[2*i], m[2*i+1])
		}
		for i := range 4 {
			g(&v, i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4, m[8+2*i], m[9+2*i])
		}
		var next [16]uint32
		for i, p := range permutation {
			next[i] = m[p]
		}
		m = next
	}
	for i := range 8 {
		v[i] ^= v[i+8]
		v[i+8] ^= h[i]
	}
	return v
}

// node is the input of the last compression of a subtree.
type node struct {
	h       [8]uint32
	m       [16]uint32
	counter uint64
	length  uint32
	flags   uint32
}

func (n node) chainingValue() (cv [8]uint32) {
	v := Compress(n.h, n.m, n.counter, n.length, n.flags)
	copy(cv[:], v[:])
	return cv
}

func words(b []byte) (m [16]uint32) {
	var padded [64]byte
	copy(padded[:], b)
	for i := range m {
		m[i] = binary.LittleEndian.Uint32(padded[4*i:])
	}
	return m
}

func chunk(key [8]uint32, in []byte, counter uint64, mode uint32) node {
	h, flags := key, mode|chunkStart
	for len(in) > 64 {
		h = node{h, words(in[:64]), counter, 64, flags}.chainingValue()
		in, flags = in[64:], mode
	}
	return node{h, words(in), counter, uint32(len(in)), flags | chunkEnd}
}

func tree(key [8]uint32, in []byte, counter uint64, mode uint32) node {
	if len(in) <= 1024 {
		return chunk(key, in, counter, mode)
	}
	left := 1024
	for 2*left < len(in) {
		left *= 2
	}
	l := tree(key, in[:left], counter, mode).chainingValue()
	r := tree(key, in[left:], counter+uint64(left/1024), mode).chainingValue()
	n := node{h: key, length: 64, flags: mode | parent}
	copy(n.m[:8], l[:])
	copy(n.m[8:], r[:])
	return n
}

// ChainingValue is the chaining value of the subtree over in, whose first chunk has number counter.
func ChainingValue(key [8]uint32, in []byte, counter uint64, mode uint32) [8]uint32 {
	return tree(key, in, counter, mode).chainingValue()
}

// Sum is n bytes of output from the given position on.
func Sum(key [8]uint32, in []byte, mode uint32, position uint64, n int) []byte {
	top := tree(key, in, 0, mode)
	var out []byte
	skip := int(position % 64)
	for block := position / 64; len(out) < n+skip; block++ {
		for _, w := range Compress(top.h, top.m, block, top.length, top.flags|root) {
			out = binary.LittleEndian.AppendUint32(out, w)
		}
	}
	return out[skip : n+skip]
}

// Key is the key of a mode: the given key, or the key of a context string.
func Key(b []byte) (key [8]uint32) {
	for i := range key {
		key[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return key
}

// ContextKey is the key of a context string.
func ContextKey(context string) [8]uint32 {
	return Key(Sum(IV, []byte(context), DeriveKeyContext, 0, 32))
}
