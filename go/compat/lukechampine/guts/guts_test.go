package guts_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/bulla-dev/bulla/go/blake3"
	"github.com/bulla-dev/bulla/go/internal/reference"
	"github.com/bulla-dev/bulla/go/internal/vectors"

	// The one line that a program changes; it was "lukechampine.com/blake3/guts".
	"github.com/bulla-dev/bulla/go/compat/lukechampine/guts"
)

// The hash of an input of several chunks, from its nodes.
func Example() {
	in := bytes.Repeat([]byte("0123456789"), 1000)
	left := guts.CompressEigentree(in[:8192], &guts.IV, 0, 0)
	var buf [guts.MaxSIMD * guts.ChunkSize]byte
	n := copy(buf[:], in[8192:])
	right := guts.CompressBuffer(&buf, n, &guts.IV, 8, 0)
	root := guts.ParentNode(guts.ChainingValue(left), guts.ChainingValue(right), &guts.IV, guts.FlagRoot)
	out := guts.WordsToBytes(guts.CompressNode(root))
	sum := blake3.Sum256(in)
	fmt.Printf("%x\n%x\n", out[:16], sum[:16])
	// Output:
	// f33e2af71099d0c9047e106e41b75157
	// f33e2af71099d0c9047e106e41b75157
}

func TestNodesOfSubtrees(t *testing.T) {
	in := vectors.Pattern(64 * guts.ChunkSize)
	key := [8]uint32{1, 2, 3, 4, 5, 6, 7, 8}
	const counter = 1<<32 - 3
	check := func(name string, size int, n guts.Node) {
		t.Helper()
		if got, want := guts.ChainingValue(n), reference.ChainingValue(key, in[:size], counter, guts.FlagKeyedHash); got != want {
			t.Errorf("%s of %d bytes: %x, want %x", name, size, got, want)
		}
	}
	for size := range guts.ChunkSize + 1 {
		check("CompressChunk", size, guts.CompressChunk(in[:size:size], &key, counter, guts.FlagKeyedHash))
	}
	buf := (*[guts.MaxSIMD * guts.ChunkSize]byte)(in)
	for size := 0; size <= len(buf); size += 1 + size/20 {
		check("CompressBuffer", size, guts.CompressBuffer(buf, size, &key, counter, guts.FlagKeyedHash))
	}
	for size := guts.ChunkSize; size <= len(in); size *= 2 {
		check("CompressEigentree", size, guts.CompressEigentree(in[:size], &key, counter, guts.FlagKeyedHash))
	}
}

// The outputs of a node are those of the compression function, with the flags of the node and no
// others.
func TestOutputsOfNodes(t *testing.T) {
	for _, flags := range []uint32{0, guts.FlagParent, guts.FlagRoot, guts.FlagKeyedHash | guts.FlagChunkEnd | guts.FlagRoot} {
		n := guts.Node{CV: [8]uint32{9, 8, 7}, Block: [16]uint32{1, 1 << 31}, Counter: 1<<32 - 4, BlockLen: 8, Flags: flags}
		var out [guts.MaxSIMD * guts.BlockSize]byte
		guts.CompressBlocks(&out, n)
		for i := range guts.MaxSIMD {
			want := reference.Compress(n.CV, n.Block, n.Counter, n.BlockLen, n.Flags)
			block := [guts.BlockSize]byte(out[i*guts.BlockSize:])
			if guts.CompressNode(n) != want || guts.BytesToWords(block) != want || guts.WordsToBytes(want) != block {
				t.Errorf("flags %x, block %d: wrong", flags, i)
			}
			n.Counter++
		}
	}
}

func TestLengthsThatAreRefused(t *testing.T) {
	for _, size := range []int{0, 1, 1023, 1025, 3 * 1024, 4*1024 + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("an eigentree of %d bytes is accepted", size)
				}
			}()
			guts.CompressEigentree(make([]byte, size), &guts.IV, 0, 0)
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("a chunk of 1025 bytes is accepted")
		}
	}()
	guts.CompressChunk(make([]byte, 1025), &guts.IV, 0, 0)
}
