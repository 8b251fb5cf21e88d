package guts

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/reference"
	"github.com/bulla-dev/bulla/go/internal/vectors"
)

// eachKernel runs the test with every kernel of this machine, and with all forms of a kernel that
// has several.
func eachKernel(t *testing.T, test func(t *testing.T)) {
	for _, k := range Available() {
		t.Run(k.String(), func(t *testing.T) {
			defer Force(k)()
			test(t)
			for _, choose := range otherForms(k) {
				restore := choose()
				test(t)
				restore()
			}
		})
	}
}

func randomCV(r *rand.Rand) (cv CV) {
	for i := range cv {
		cv[i] = r.Uint32()
	}
	return cv
}

func TestPortableAgainstReference(t *testing.T) {
	defer Force(Portable)()
	r := rand.New(rand.NewPCG(1, 2))
	in := vectors.Pattern(20 * ChunkLen)
	for n := 0; n <= len(in); n += 1 + n/64 {
		key, counter := randomCV(r), r.Uint64()>>1
		got := Subtree(in[:n], &key, counter, KeyedHash)
		if want := reference.ChainingValue(key, in[:n], counter, KeyedHash); got != want {
			t.Fatalf("length %d: %x, want %x", n, got, want)
		}
	}
}

// referenceOne is One, block by block, by the reference.
func referenceOne(in []byte, cv CV, counter uint64, f Flags) CV {
	flags := f.All | f.First
	for {
		n := min(len(in), BlockLen)
		if n == len(in) {
			flags |= f.Last
		}
		var padded [BlockLen]byte
		copy(padded[:], in[:n])
		var m [16]uint32
		for i := range m {
			m[i] = binary.LittleEndian.Uint32(padded[4*i:])
		}
		v := reference.Compress(cv, m, counter, uint32(n), flags)
		cv, in, flags = CV(v[:8]), in[n:], f.All
		if len(in) == 0 {
			return cv
		}
	}
}

func TestOneEveryLength(t *testing.T) {
	in := vectors.Pattern(ChunkLen)
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for n := range ChunkLen + 1 {
			key, counter := randomCV(r), r.Uint64()
			f := Flags{All: r.Uint32(), First: r.Uint32(), Last: r.Uint32()}
			var got CV
			One(&got, in[:n:n], &key, counter, f)
			if want := referenceOne(in[:n], key, counter, f); got != want {
				t.Fatalf("length %d: %x, want %x", n, got, want)
			}
		}
	})
}

// Every length to four chunks past the widest kernel, with a counter that passes 2^32 among the
// lanes.
func TestChunksEveryLength(t *testing.T) {
	const most = MaxLanes + 4
	in := vectors.Pattern(most * ChunkLen)
	r := rand.New(rand.NewPCG(5, 6))
	key := randomCV(r)
	const counter = 1<<32 - 7
	// Chaining values of whole chunks do not depend on what follows them.
	var whole [most + MaxLanes]CV
	chunksPortable(whole[:], in, &key, counter, KeyedHash)
	eachKernel(t, func(t *testing.T) {
		var got [most + MaxLanes]CV
		for n := range len(in) + 1 {
			k := Chunks(got[:], in[:n:n], &key, counter, KeyedHash)
			var last CV
			onePortable(&last, in[(k-1)*ChunkLen:n], &key, counter+uint64(k-1), ChunkFlags(KeyedHash, 0))
			for i := range k - 1 {
				if got[i] != whole[i] {
					t.Fatalf("length %d: chunk %d of %d is wrong", n, i, k)
				}
			}
			if got[k-1] != last {
				t.Fatalf("length %d: the last chunk of %d is wrong", n, k)
			}
		}
	})
}

// A counter that passes 2^32 in any lane of any of several groups.
func TestChunkCounters(t *testing.T) {
	const most = 3*MaxLanes + 5
	in := vectors.Pattern(most * ChunkLen)
	eachKernel(t, func(t *testing.T) {
		for k := range uint64(most + 1) {
			var got, want [most + MaxLanes]CV
			counter := 1<<32 - k
			Chunks(got[:], in, &IV, counter, 0)
			chunksPortable(want[:], in, &IV, counter, 0)
			if !slices.Equal(got[:most], want[:most]) {
				t.Fatalf("from counter %d: wrong", counter)
			}
		}
	})
}

// Every number of chunks up to a batch, at every level that it allows, with counters that pass
// 2^32.
func TestReduce(t *testing.T) {
	in := vectors.Pattern(BatchChunks * ChunkLen)
	r := rand.New(rand.NewPCG(13, 14))
	key := randomCV(r)
	eachKernel(t, func(t *testing.T) {
		for chunks := 1; chunks <= BatchChunks; chunks += 1 + chunks/40 {
			n := chunks*ChunkLen - r.IntN(2)*r.IntN(ChunkLen)
			counter := 1<<32 - uint64(r.IntN(2*chunks))
			var want Scratch
			chunksPortable(want[:], in[:n], &key, counter, KeyedHash)
			for level := range 7 {
				var got Scratch
				var groups Groups
				k, reached := Reduce(got[:], groups[:], in[:n:n], &key, counter, KeyedHash, level)
				values := chunks
				values = (values + 1<<reached - 1) >> reached
				if reached > level || k != values {
					t.Fatalf("%d chunks, level %d of %d: %d values, want %d", chunks, reached, level, k, values)
				}
				up := want
				for m := chunks; m > k; {
					m = parentLevelPortable(up[:], m, &key)
				}
				if !slices.Equal(got[:k], up[:k]) {
					t.Fatalf("%d chunks, level %d: wrong", chunks, level)
				}
			}
		}
	})
}

func parentLevelPortable(cvs []CV, n int, key *CV) int {
	for i := range n / 2 {
		parentPortable(&cvs[i], &cvs[2*i], &cvs[2*i+1], key, KeyedHash|ParentFlag)
	}
	if n&1 == 1 {
		cvs[n/2] = cvs[n-1]
	}
	return (n + 1) / 2
}

// Parents in place, and one element down, for every number of pairs; the element after the last
// pair must survive.
func TestParents(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		key := randomCV(r)
		for pairs := range 3*MaxLanes + 2 {
			for shift := range 2 {
				var buf, before [1 + 6*MaxLanes + 4 + MaxLanes]CV
				for i := range buf {
					buf[i] = randomCV(r)
				}
				before = buf
				Parents(buf[shift:], buf[:], pairs, &key, KeyedHash)
				for i := range pairs {
					m := [16]uint32(slices.Concat(before[2*i][:], before[2*i+1][:]))
					want := reference.Compress(key, m, 0, BlockLen, KeyedHash|ParentFlag)
					if buf[shift+i] != CV(want[:8]) {
						t.Fatalf("%d pairs, shift %d: parent %d is wrong", pairs, shift, i)
					}
				}
				if buf[2*pairs] != before[2*pairs] && pairs > shift {
					t.Fatalf("%d pairs, shift %d: the element after the last pair is lost", pairs, shift)
				}
			}
		}
	})
}

func TestSubtreesAgainstReference(t *testing.T) {
	in := vectors.Pattern(600*ChunkLen + 17)
	eachKernel(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 1024, 1025, 16384, 16385, 40000, 262144, 262145, 300000, 524288, 600000, len(in)} {
			got := Subtree(in[:n], &IV, 1<<20, 0)
			if want := CV(reference.ChainingValue(IV, in[:n], 1<<20, 0)); got != want {
				t.Fatalf("length %d: wrong", n)
			}
		}
	})
}

// Pushes of many lengths in a row must give the tree that one push gives.
func TestStackPushesOfAnyLength(t *testing.T) {
	in := vectors.Pattern(900 * ChunkLen)
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for round := range 60 {
			var s Stack
			var buf Scratch
			var groups Groups
			chunks := 2 + r.IntN(880)
			for s.Count+1 < uint64(chunks) {
				n := min(1+r.IntN(1+r.IntN(BatchChunks)), chunks-1-int(s.Count))
				more := in[s.Count*ChunkLen:][:n*ChunkLen]
				if round%2 == 0 {
					s.Absorb(&buf, &groups, more, &IV, s.Count, 0)
					continue
				}
				Chunks(buf[1:], more, &IV, s.Count, 0)
				s.Push(buf[:], n, 0, &IV, 0)
			}
			level := 0
			rest := in[s.Count*ChunkLen : chunks*ChunkLen]
			if round%2 == 0 {
				level = bits.TrailingZeros64(s.Count)
			}
			rest = rest[:min(len(rest), BatchChunks*ChunkLen)]
			chunks = int(s.Count) + len(rest)/ChunkLen
			n, level := Reduce(buf[1:], groups[:], rest, &IV, s.Count, 0, level)
			node := s.Root(buf[:], n, level, &IV, 0)
			want := reference.Sum(reference.IV, in[:chunks*ChunkLen], 0, 0, 32)
			if got := node.Root256(); string(got[:]) != string(want) {
				t.Fatalf("round %d, %d chunks: wrong", round, chunks)
			}
		}
	})
}

// Absorbing whole chunks that may be the end gives the shape of a saved state, and the root of the
// input.
func TestAbsorbLast(t *testing.T) {
	in := vectors.Pattern(700 * ChunkLen)
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(15, 16))
		for range 60 {
			var s, shape Stack
			var buf Scratch
			var groups Groups
			first, n := r.IntN(300), 2+r.IntN(390)
			s.Absorb(&buf, &groups, in[:first*ChunkLen], &IV, 0, 0)
			s.AbsorbLast(&buf, &groups, in[first*ChunkLen:][:n*ChunkLen], &IV, uint64(first), 0)
			shape.SetShape(uint64(first + n))
			if shape.Count != s.Count || shape.Last != s.Last {
				t.Fatalf("%d and %d chunks: %d and %d, by shape %d and %d", first, n, s.Count, s.Last, shape.Count, shape.Last)
			}
			node := s.RootOfLast(&IV, 0)
			want := reference.Sum(reference.IV, in[:(first+n)*ChunkLen], 0, 0, 32)
			if got := node.Root256(); string(got[:]) != string(want) {
				t.Fatalf("%d and %d chunks: wrong", first, n)
			}
		}
	})
}

// A stack whose last subtree is unmerged has the root of its input, and takes more input once that
// is merged.
func TestStackUnmergedLast(t *testing.T) {
	in := vectors.Pattern(71 * ChunkLen)
	cvs := make([]CV, 70)
	for i := range cvs {
		One(&cvs[i], in[i*ChunkLen:(i+1)*ChunkLen], &IV, uint64(i), ChunkFlags(0, 0))
	}
	for chunks := 2; chunks <= len(cvs); chunks++ {
		var s, shape Stack
		for _, cv := range cvs[:chunks-1] {
			s.PushSubtree(cv, 1, &IV, 0)
		}
		s.PushLast(cvs[chunks-1], 1, &IV, 0)
		shape.SetShape(uint64(chunks))
		if shape.Count != s.Count || shape.Last != s.Last || len(shape.CVs()) != len(s.CVs()) || s.Chunks() != uint64(chunks) {
			t.Fatalf("%d chunks: %d and %d, by shape %d and %d", chunks, s.Count, s.Last, shape.Count, shape.Last)
		}
		node := s.RootOfLast(&IV, 0)
		want := reference.Sum(reference.IV, in[:chunks*ChunkLen], 0, 0, 32)
		if got := node.Root256(); string(got[:]) != string(want) {
			t.Fatalf("%d chunks: wrong", chunks)
		}
		s.MergeLast(&IV, 0)
		var buf [2 + MaxLanes]CV
		n := Chunks(buf[1:], in[chunks*ChunkLen:][:1], &IV, s.Count, 0)
		node = s.Root(buf[:], n, 0, &IV, 0)
		want = reference.Sum(reference.IV, in[:chunks*ChunkLen+1], 0, 0, 32)
		if got := node.Root256(); string(got[:]) != string(want) {
			t.Fatalf("%d chunks and a byte: wrong", chunks)
		}
	}
}

// Every number of output blocks to four past the widest kernel, with a counter that passes 2^32
// among the lanes.
func TestRootOutput(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		for blocks := range 2*MaxLanes + 5 {
			for _, counter := range []uint64{0, 1<<32 - 5, r.Uint64() >> 1} {
				n := Node{CV: randomCV(r), Len: r.Uint32N(65), Flags: r.Uint32()}
				for i := range n.Len / 4 { // with zeros after it
					n.Block[i] = r.Uint32()
				}
				got := make([]byte, blocks*BlockLen+1)
				n.Root(got[:blocks*BlockLen:blocks*BlockLen], counter)
				var want []byte
				for i := range uint64(blocks) {
					for _, word := range reference.Compress(n.CV, n.Block, counter+i, n.Len, n.Flags|Root) {
						want = binary.LittleEndian.AppendUint32(want, word)
					}
				}
				if string(got[:len(want)]) != string(want) || got[len(want)] != 0 {
					t.Fatalf("%d blocks from %d: wrong", blocks, counter)
				}
			}
		}
	})
}

func TestForce(t *testing.T) {
	for _, k := range Available() {
		if got := initial(k.String()); got != k {
			t.Errorf("%v: got %v", k, got)
		}
	}
	defer func() {
		if message := fmt.Sprint(recover()); !strings.Contains(message, "portable") || !strings.Contains(message, ForceVariable) {
			t.Errorf("the panic does not say what there is: %s", message)
		}
	}()
	initial("x86_64/avx1024")
}
