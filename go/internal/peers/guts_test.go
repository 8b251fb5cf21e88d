package peers

import (
	"math/rand/v2"
	"slices"
	"testing"

	ours "github.com/bulla-dev/bulla/go/compat/lukechampine/guts"
	theirs "lukechampine.com/blake3/guts"
)

func words(r *rand.Rand, words []uint32) {
	for i := range words {
		words[i] = r.Uint32()
	}
}

// The nodes of both packages have the same fields, so that one converts to the other.
func TestGutsNodes(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	in := pattern(256 * ours.ChunkSize)
	buf := (*[ours.MaxSIMD * ours.ChunkSize]byte)(in)
	for range 2000 {
		var key, left, right [8]uint32
		words(r, key[:])
		words(r, left[:])
		words(r, right[:])
		counter := r.Uint64() >> r.IntN(64)
		flags := []uint32{0, ours.FlagKeyedHash, ours.FlagDeriveKeyContext, ours.FlagDeriveKeyMaterial}[r.IntN(4)]
		chunk, buffer, tree := r.IntN(ours.ChunkSize+1), r.IntN(len(buf)+1), ours.ChunkSize<<r.IntN(9)
		for name, pair := range map[string][2]theirs.Node{
			"chunk": {
				theirs.Node(ours.CompressChunk(in[:chunk], &key, counter, flags)),
				theirs.CompressChunk(in[:chunk], &key, counter, flags),
			},
			"buffer": {
				theirs.Node(ours.CompressBuffer(buf, buffer, &key, counter, flags)),
				theirs.CompressBuffer(buf, buffer, &key, counter, flags),
			},
			"tree": {
				theirs.Node(ours.CompressEigentree(in[:tree], &key, counter, flags)),
				theirs.CompressEigentree(in[:tree], &key, counter, flags),
			},
			"parent": {
				theirs.Node(ours.ParentNode(left, right, &key, flags|ours.FlagRoot)),
				theirs.ParentNode(left, right, &key, flags|theirs.FlagRoot),
			},
		} {
			if pair[0] != pair[1] {
				t.Fatalf("%s: %+v, theirs %+v", name, pair[0], pair[1])
			}
			gutsOutputs(t, ours.Node(pair[0]))
		}
	}
}

// gutsOutputs compares both packages' outputs of a node, and of the same node as a root.
func gutsOutputs(t *testing.T, n ours.Node) {
	t.Helper()
	for _, flag := range []uint32{0, ours.FlagRoot} {
		n.Flags |= flag
		full := ours.CompressNode(n)
		if full != theirs.CompressNode(theirs.Node(n)) || ours.ChainingValue(n) != theirs.ChainingValue(theirs.Node(n)) {
			t.Fatalf("%+v: another output", n)
		}
		var got, want [ours.MaxSIMD * ours.BlockSize]byte
		ours.CompressBlocks(&got, n)
		if theirs.CompressBlocks(&want, theirs.Node(n)); got != want {
			t.Fatalf("%+v: other blocks", n)
		}
		if ours.WordsToBytes(full) != theirs.WordsToBytes(full) || ours.BytesToWords([64]byte(got[:])) != theirs.BytesToWords([64]byte(got[:])) {
			t.Fatalf("%+v: words are read or written otherwise", n)
		}
	}
}

func TestEigentrees(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	for range 100000 {
		counter, chunks := r.Uint64()>>(1+r.IntN(63)), r.Uint64()>>(1+r.IntN(63))
		if got, want := ours.Eigentrees(counter, chunks), theirs.Eigentrees(counter, chunks); !slices.Equal(got, want) {
			t.Fatalf("%d chunks after %d: %v, theirs %v", chunks, counter, got, want)
		}
	}
	for counter := range uint64(70) {
		for chunks := range uint64(70) {
			if got, want := ours.Eigentrees(counter, chunks), theirs.Eigentrees(counter, chunks); !slices.Equal(got, want) {
				t.Fatalf("%d chunks after %d: %v, theirs %v", chunks, counter, got, want)
			}
		}
	}
}

func TestGutsConstants(t *testing.T) {
	got := []int{ours.FlagChunkStart, ours.FlagChunkEnd, ours.FlagParent, ours.FlagRoot, ours.FlagKeyedHash, ours.FlagDeriveKeyContext,
		ours.FlagDeriveKeyMaterial, ours.BlockSize, ours.ChunkSize, ours.MaxSIMD}
	want := []int{theirs.FlagChunkStart, theirs.FlagChunkEnd, theirs.FlagParent, theirs.FlagRoot, theirs.FlagKeyedHash,
		theirs.FlagDeriveKeyContext, theirs.FlagDeriveKeyMaterial, theirs.BlockSize, theirs.ChunkSize, theirs.MaxSIMD}
	if !slices.Equal(got, want) || ours.IV != theirs.IV {
		t.Errorf("%v, theirs %v", got, want)
	}
}
