package guts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/reference"
	"github.com/bulla-dev/bulla/go/internal/vectors"
)

// eachKernel runs the test with every kernel of this machine in use.
func eachKernel(t *testing.T, test func(t *testing.T)) {
	for _, k := range Available() {
		t.Run(k.String(), func(t *testing.T) {
			defer Force(k)()
			test(t)
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

func TestOneEveryLength(t *testing.T) {
	in := vectors.Pattern(ChunkLen)
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for n := range ChunkLen + 1 {
			key, counter := randomCV(r), r.Uint64()
			f := Flags{All: r.Uint32(), First: r.Uint32(), Last: r.Uint32()}
			var got, want CV
			One(&got, in[:n:n], &key, counter, f)
			onePortable(&want, in[:n], &key, counter, f)
			if got != want {
				t.Fatalf("length %d: %x, want %x", n, got, want)
			}
		}
	})
}

// Every length to four chunks past the widest kernel, with a counter that passes 2^32 among the lanes.
func TestChunksEveryLength(t *testing.T) {
	const most = MaxLanes + 4
	in := vectors.Pattern(most * ChunkLen)
	r := rand.New(rand.NewPCG(5, 6))
	key := randomCV(r)
	const counter = 1<<32 - 7
	// Chaining values of whole chunks do not depend on what follows them.
	var whole [most + MaxLanes]CV
	chunksPortable(whole[:], nil, in, &key, counter, KeyedHash)
	eachKernel(t, func(t *testing.T) {
		var got [most + MaxLanes]CV
		for n := range len(in) + 1 {
			k := Chunks(got[:], nil, in[:n:n], &key, counter, KeyedHash)
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
			Chunks(got[:], nil, in, &IV, counter, 0)
			chunksPortable(want[:], nil, in, &IV, counter, 0)
			if !slices.Equal(got[:most], want[:most]) {
				t.Fatalf("from counter %d: wrong", counter)
			}
		}
	})
}

func TestChunksWithHead(t *testing.T) {
	in := vectors.Pattern(40 * ChunkLen)
	key := IV
	eachKernel(t, func(t *testing.T) {
		for head := range 18 {
			for _, n := range []int{1, 1023, 1024, 1025, 5000, 15 * 1024, 16*1024 + 1, 20 * 1024} {
				var got, want [64]CV
				h := append([]byte(nil), in[:head*ChunkLen]...)
				k := Chunks(got[:], h, in[head*ChunkLen:][:n:n], &key, 3, 0)
				chunksPortable(want[:], nil, in[:head*ChunkLen+n], &key, 3, 0)
				if !slices.Equal(got[:k], want[:k]) {
					t.Fatalf("head %d, %d bytes: wrong", head, n)
				}
			}
		}
	})
}

// Parents in place, and one element down, for every number of pairs; the element after the last pair must survive.
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
					var want CV
					parentPortable(&want, &before[2*i], &before[2*i+1], &key, KeyedHash|ParentFlag)
					if buf[shift+i] != want {
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
			chunks := 2 + r.IntN(880)
			for s.Count+1 < uint64(chunks) {
				n := min(1+r.IntN(1+r.IntN(BatchChunks)), chunks-1-int(s.Count))
				Chunks(buf[1:], nil, in[s.Count*ChunkLen:][:n*ChunkLen], &IV, s.Count, 0)
				s.Push(buf[:], n, &IV, 0)
			}
			n := Chunks(buf[1:], nil, in[s.Count*ChunkLen:chunks*ChunkLen], &IV, s.Count, 0)
			node := s.Root(buf[:], n, &IV, 0)
			want := reference.Sum(reference.IV, in[:chunks*ChunkLen], 0, 0, 32)
			if got := node.Root256(); string(got[:]) != string(want) {
				t.Fatalf("round %d, %d chunks: wrong", round, chunks)
			}
		}
	})
}

// A stack whose last subtree is unmerged has the root of its input, and takes more input once that is merged.
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
		s.PushLast(cvs[chunks-1], &IV, 0)
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
		n := Chunks(buf[1:], nil, in[chunks*ChunkLen:][:1], &IV, s.Count, 0)
		node = s.Root(buf[:], n, &IV, 0)
		want = reference.Sum(reference.IV, in[:chunks*ChunkLen+1], 0, 0, 32)
		if got := node.Root256(); string(got[:]) != string(want) {
			t.Fatalf("%d chunks and a byte: wrong", chunks)
		}
	}
}

// Every number of output blocks to four past the widest kernel, with a counter that passes 2^32 among the lanes.
func TestRootOutput(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		for blocks := range 2*MaxLanes + 5 {
			for _, counter := range []uint64{0, 1<<32 - 5, r.Uint64() >> 1} {
				n := Node{CV: randomCV(r), Len: r.Uint32N(65), Flags: r.Uint32()}
				for i := range n.Len / 4 { // with zeros after it
					n.Block[i] = r.Uint32()
				}
				got, want := make([]byte, blocks*BlockLen+1), make([]byte, blocks*BlockLen)
				n.Root(got[:blocks*BlockLen:blocks*BlockLen], counter)
				xofPortable(want, &n, counter)
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
