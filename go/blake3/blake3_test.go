package blake3

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"hash"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/guts"
	"github.com/bulla-dev/bulla/go/internal/reference"
	"github.com/bulla-dev/bulla/go/internal/vectors"
)

const (
	testKey     = "whats the Elvish word for friend"
	testContext = "BLAKE3 2019-12-27 16:29:52 test vectors context"
)

// eachKernel runs the test with every kernel of this machine, or with the forced one.
func eachKernel(t *testing.T, test func(t *testing.T)) {
	kernels := guts.Available()
	if os.Getenv(guts.ForceVariable) != "" {
		kernels = []guts.Kernel{guts.Active()}
	}
	for _, k := range kernels {
		t.Run(k.String(), func(t *testing.T) {
			defer guts.Force(k)()
			if Kernel() != k.String() {
				t.Fatalf("the kernel in use is %s", Kernel())
			}
			test(t)
		})
	}
}

// modes are the three modes by the names of the vectors.
func modes(t testing.TB) map[string]func() *Hasher {
	return map[string]func() *Hasher{
		"hash": New,
		"keyed_hash": func() *Hasher {
			h, err := NewKeyed([]byte(testKey))
			if err != nil {
				t.Fatal(err)
			}
			return h
		},
		"derive_key": func() *Hasher { return NewDeriveKey(testContext) },
	}
}

type vectorFile struct {
	Cases []struct {
		InputLen  int    `json:"input_len"`
		Hash      string `json:"hash"`
		KeyedHash string `json:"keyed_hash"`
		DeriveKey string `json:"derive_key"`
	}
	OutputPieces []struct {
		InputLen int `json:"input_len"`
		Position string
		Len      int
		Hash     string
	} `json:"output_pieces"`
}

func TestVectors(t *testing.T) {
	var file vectorFile
	vectors.Read(t, "blake3.json", &file)
	if len(file.Cases) < 35 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	eachKernel(t, func(t *testing.T) {
		for _, c := range file.Cases {
			in := vectors.Pattern(c.InputLen)
			for name, want := range map[string]string{"hash": c.Hash, "keyed_hash": c.KeyedHash, "derive_key": c.DeriveKey} {
				h := modes(t)[name]()
				h.Write(in)
				out := make([]byte, len(want)/2)
				h.Finalize(out)
				if got := hex.EncodeToString(out); got != want {
					t.Errorf("%s of %d bytes: %s, want %s", name, c.InputLen, got, want)
				}
				oneShots(t, name, in, out)
			}
		}
	})
}

// oneShots checks the calls without a hasher against the output of one.
func oneShots(t *testing.T, mode string, in, want []byte) {
	t.Helper()
	out := make([]byte, len(want))
	switch mode {
	case "hash":
		Sum(in, out)
		sum256, sum512 := Sum256(in), Sum512(in)
		if !bytes.Equal(sum256[:], want[:32]) || !bytes.Equal(sum512[:], want[:64]) {
			t.Errorf("Sum256 or Sum512 of %d bytes is wrong", len(in))
		}
	case "keyed_hash":
		sum := SumKeyed((*[32]byte)([]byte(testKey)), in)
		if copy(out, want); !bytes.Equal(sum[:], want[:32]) {
			t.Errorf("SumKeyed of %d bytes is wrong", len(in))
		}
	case "derive_key":
		DeriveKey(testContext, in, out)
	}
	if !bytes.Equal(out, want) {
		t.Errorf("%s of %d bytes: the one-shot call differs", mode, len(in))
	}
}

// Every length from 0 to 36864 in every mode.
func TestEveryLength(t *testing.T) {
	var file struct {
		Runs []struct {
			From, To  int
			Hash      string
			KeyedHash string `json:"keyed_hash"`
			DeriveKey string `json:"derive_key"`
		}
	}
	vectors.Read(t, "blake3-lengths.json", &file)
	last := file.Runs[len(file.Runs)-1].To
	if last < 36864 {
		t.Fatalf("the vectors end at %d", last)
	}
	in := vectors.Pattern(last)
	key := contextKey(testContext)
	derived := key.Bytes()
	eachKernel(t, func(t *testing.T) {
		for _, run := range file.Runs {
			plain, keyed, derive := New(), New(), New()
			for n := run.From; n <= run.To; n++ {
				sum := Sum256(in[:n:n])
				plain.Write(sum[:])
				sum = SumKeyed((*[32]byte)([]byte(testKey)), in[:n:n])
				keyed.Write(sum[:])
				words := guts.CVFromBytes(&derived)
				node := rootNode(in[:n:n], &words, guts.DeriveKeyMaterial)
				sum = node.Root256()
				derive.Write(sum[:])
			}
			for want, h := range map[string]*Hasher{run.Hash: plain, run.KeyedHash: keyed, run.DeriveKey: derive} {
				if got := hex.EncodeToString(h.Sum(nil)); got != want {
					t.Errorf("lengths %d to %d: %s, want %s", run.From, run.To, got, want)
				}
			}
		}
	})
}

// Longer inputs than the vectors: several batches, and inputs that goroutines share.
func TestLongInputs(t *testing.T) {
	in := vectors.Pattern(5<<20 + 3)
	key := reference.Key([]byte(testKey))
	derived := reference.ContextKey(testContext)
	for _, n := range []int{300000, parallelMin - 1, parallelMin, parallelMin + 1, 1<<20 + 1024, 3<<20 - 1, len(in)} {
		out := make([]byte, 100)
		if Sum(in[:n], out); !bytes.Equal(out, reference.Sum(reference.IV, in[:n], reference.Hash, 0, len(out))) {
			t.Errorf("Sum of %d bytes is wrong", n)
		}
		if Sum256(in[:n]) != [32]byte(out) || Sum512(in[:n]) != [64]byte(out) {
			t.Errorf("Sum256 or Sum512 of %d bytes is wrong", n)
		}
		sum := SumKeyed((*[32]byte)([]byte(testKey)), in[:n])
		if want := reference.Sum(key, in[:n], reference.KeyedHash, 0, 32); !bytes.Equal(sum[:], want) {
			t.Errorf("SumKeyed of %d bytes is wrong", n)
		}
		DeriveKey(testContext, in[:n], out)
		if want := reference.Sum(derived, in[:n], reference.DeriveKeyMaterial, 0, len(out)); !bytes.Equal(out, want) {
			t.Errorf("DeriveKey of %d bytes is wrong", n)
		}
	}
}

func TestOutputPieces(t *testing.T) {
	var file vectorFile
	vectors.Read(t, "blake3.json", &file)
	if len(file.OutputPieces) == 0 {
		t.Fatal("no pieces")
	}
	eachKernel(t, func(t *testing.T) {
		for _, c := range file.OutputPieces {
			position, err := strconv.ParseUint(c.Position, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			h := New()
			h.Write(vectors.Pattern(c.InputLen))
			r := h.Digest()
			r.SetPosition(position)
			out := make([]byte, c.Len)
			if n, err := r.Read(out); n != c.Len || err != nil {
				t.Fatalf("%d bytes read, %v", n, err)
			}
			if sum := Sum256(out); hex.EncodeToString(sum[:]) != c.Hash {
				t.Errorf("input of %d, position %s, %d bytes: wrong", c.InputLen, c.Position, c.Len)
			}
		}
	})
}

// Reads of all lengths from all offsets in a block, in sequence, and after seeks.
func TestOutputReader(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		h := New()
		h.WriteString("abc")
		all := make([]byte, 5000)
		h.Finalize(all)
		if want := reference.Sum(reference.IV, []byte("abc"), 0, 0, len(all)); !bytes.Equal(all, want) {
			t.Fatal("Finalize is wrong")
		}
		r := h.Digest()
		random := rand.New(rand.NewPCG(1, 1))
		for at := 0; at < len(all); {
			b := make([]byte, min(len(all)-at, random.IntN(1+random.IntN(700))))
			if n, err := r.Read(b); n != len(b) || err != nil {
				t.Fatal(n, err)
			}
			if !bytes.Equal(b, all[at:at+len(b)]) {
				t.Fatalf("%d bytes at %d are wrong", len(b), at)
			}
			at += len(b)
		}
		for range 300 {
			at := random.IntN(4000)
			b := make([]byte, random.IntN(1000))
			if pos, err := r.Seek(int64(at), io.SeekStart); pos != int64(at) || err != nil {
				t.Fatal(pos, err)
			}
			r.Read(b)
			if !bytes.Equal(b, all[at:at+len(b)]) {
				t.Fatalf("%d bytes at %d are wrong", len(b), at)
			}
		}
	})
}

func TestSeek(t *testing.T) {
	r := New().Digest()
	steps := []struct {
		offset int64
		whence int
		want   int64
		fails  bool
	}{
		{100, io.SeekStart, 100, false},
		{30, io.SeekCurrent, 130, false},
		{-60, io.SeekCurrent, 70, false},
		{-71, io.SeekCurrent, 0, true},
		{0, io.SeekCurrent, 70, false},
		{-1, io.SeekStart, 0, true},
		{-1, io.SeekEnd, 0, true},
		{0, 3, 0, true},
		{math.MaxInt64 - 70, io.SeekCurrent, math.MaxInt64, false},
		{0, io.SeekCurrent, math.MaxInt64, false},
		{1, io.SeekCurrent, 0, true},
		{math.MaxInt64, io.SeekCurrent, 0, true},
		{-math.MaxInt64, io.SeekCurrent, 0, false},
		{math.MaxInt64, io.SeekStart, math.MaxInt64, false},
		{-1, io.SeekCurrent, math.MaxInt64 - 1, false},
		{2, io.SeekCurrent, 0, true},
		{math.MinInt64, io.SeekCurrent, 0, true},
	}
	for i, s := range steps {
		before := r.Position()
		got, err := r.Seek(s.offset, s.whence)
		if got != s.want || (err != nil) != s.fails {
			t.Errorf("step %d: %d, %v", i, got, err)
		}
		after := uint64(s.want)
		if s.fails {
			after = before
		}
		if r.Position() != after {
			t.Errorf("step %d: the position is %d, want %d", i, r.Position(), after)
		}
	}
}

// From a position that does not fit into an int64, only Seek from the beginning leads back.
func TestSeekFromBeyondInt64(t *testing.T) {
	for _, position := range []uint64{math.MaxInt64 + 1, math.MaxInt64 + 2, math.MaxUint64} {
		for _, offset := range []int64{math.MinInt64, -2, -1, 0, 1, math.MaxInt64} {
			r := New().Digest()
			r.SetPosition(position)
			if got, err := r.Seek(offset, io.SeekCurrent); got != 0 || err == nil || r.Position() != position {
				t.Errorf("by %d from %d: %d, %v, now at %d", offset, position, got, err, r.Position())
			}
			if got, err := r.Seek(7, io.SeekStart); got != 7 || err != nil || r.Position() != 7 {
				t.Errorf("to 7 from %d: %d, %v, now at %d", position, got, err, r.Position())
			}
		}
	}
}

// The output has 2^64-1 bytes: the last block lacks its last byte.
func TestOutputEnds(t *testing.T) {
	for left := range 80 {
		for n := range 80 {
			r := New().Digest()
			position := math.MaxUint64 - uint64(left)
			r.SetPosition(position)
			b := bytes.Repeat([]byte{0xA5}, n+1)
			got, err := r.Read(b[:n:n])
			want := min(n, left)
			var wantErr error
			if left == 0 && n > 0 {
				wantErr = io.EOF
			}
			if got != want || err != wantErr || r.Position() != position+uint64(want) {
				t.Fatalf("%d bytes before the end, read of %d: %d, %v, now at %d", left, n, got, err, r.Position())
			}
			sum := append(referenceOutput(position, want), bytes.Repeat([]byte{0xA5}, n+1-want)...)
			if !bytes.Equal(b, sum) {
				t.Fatalf("%d bytes before the end, read of %d: %x, want %x", left, n, b, sum)
			}
		}
	}
}

// referenceOutput returns n bytes of the hash of the empty input from the given position on, which
// may be near the end.
func referenceOutput(position uint64, n int) []byte {
	return reference.Sum(reference.IV, nil, reference.Hash, position, n)
}

// referenceSum is the hash of in, and referenceSumKeyed the hash with testKey, by code that shares
// nothing with the package.
func referenceSum(in []byte) [32]byte {
	return [32]byte(reference.Sum(reference.IV, in, reference.Hash, 0, 32))
}

func referenceSumKeyed(in []byte) [32]byte {
	return [32]byte(reference.Sum(reference.Key([]byte(testKey)), in, reference.KeyedHash, 0, 32))
}

func TestWritesOfAnyLength(t *testing.T) {
	in := vectors.Pattern(3 << 20)
	eachKernel(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(2, 2))
		for round := range 150 {
			h := New()
			if round%3 == 0 {
				h.SetConcurrency(3)
			}
			n := random.IntN(1 + random.IntN(len(in)))
			most := 1 + random.IntN(1<<(1+random.IntN(21)))
			var lengths []int
			for at := 0; at < n; {
				k := min(n-at, random.IntN(most)+1)
				if len(lengths) > 500 {
					k = n - at
				}
				h.Write(in[at : at+k])
				lengths = append(lengths, k)
				at += k
				if random.IntN(50) == 0 {
					h.Sum(nil)
				}
			}
			if h.Sum256() != Sum256(in[:n]) {
				t.Fatalf("%d bytes in writes of %v: wrong", n, lengths)
			}
		}
	})
}

func TestSmallWritesEveryLength(t *testing.T) {
	in := vectors.Pattern(20*guts.ChunkLen + 1)
	eachKernel(t, func(t *testing.T) {
		for _, step := range []int{1, 63, 64, 65, 1000, 1024, 3000, 16384} {
			h := New()
			for at := 0; at < len(in); at += step {
				h.Write(in[at:min(at+step, len(in))])
				if n := min(at+step, len(in)); step > 60 || n%97 == 0 {
					if h.Sum256() != Sum256(in[:n]) {
						t.Fatalf("%d bytes in writes of %d: wrong", n, step)
					}
				}
			}
		}
	})
}

func TestCloneIsIndependent(t *testing.T) {
	in := vectors.Pattern(50000)
	for _, first := range []int{0, 10, 1024, 5000, 40000} {
		h := New()
		for at := 0; at < first; at += 10 {
			h.Write(in[at : at+min(10, first-at)])
		}
		c := h.Clone()
		h.Write(vectors.Pattern(20000))
		c.Write(in[first:])
		if c.Sum256() != Sum256(in) {
			t.Errorf("after %d bytes: the clone is wrong", first)
		}
	}
}

func TestResetKeepsTheMode(t *testing.T) {
	for name, make := range modes(t) {
		h := make()
		for range 3000 {
			h.WriteString("0123456789")
		}
		h.Reset()
		h.WriteString("abc")
		want := make()
		want.WriteString("abc")
		if h.Sum256() != want.Sum256() {
			t.Errorf("%s: wrong after Reset", name)
		}
	}
}

func TestKeyLength(t *testing.T) {
	for _, n := range []int{0, 31, 33, 64} {
		if h, err := NewKeyed(make([]byte, n)); h != nil || err == nil {
			t.Errorf("a key of %d bytes is accepted", n)
		}
	}
}

// Every worker must get some segments, also of the shortest input.
func TestSegmentsLeaveWorkForEveryWorker(t *testing.T) {
	for workers := 2; workers <= 32; workers++ {
		for n := parallelMin / guts.ChunkLen; n <= 1<<20; n *= 2 {
			if size := segmentChunks(n, workers); n/size < workers || size < guts.MaxLanes || size&(size-1) != 0 {
				t.Errorf("%d chunks for %d workers: %d in a segment", n, workers, size)
			}
		}
	}
}

// The parallel path must be exact at the edges of its segments, whatever the number of goroutines.
func TestParallel(t *testing.T) {
	in := vectors.Pattern(5<<20 + 3)
	for _, n := range []int{
		1 << 16, 3<<15 + 1, parallelMin - 1, parallelMin, parallelMin + 1, parallelMin + 16<<10 - 1, parallelMin + 1<<15 + 1025,
		1 << 20, 1<<20 + 1, 3<<20 - 1024, len(in),
	} {
		want := guts.RootNode(in[:n], &guts.IV, 0)
		for _, workers := range []int{1, 2, 3, 4, 5, 8, 16} {
			if got := rootParallel(in[:n], &guts.IV, 0, workers); got.Root256() != want.Root256() {
				t.Errorf("%d bytes by %d goroutines: wrong", n, workers)
			}
		}
	}
}

func TestZeroValue(t *testing.T) {
	var empty, h Hasher
	in := vectors.Pattern(100000)
	h.Write(in)
	if empty.Sum256() != Sum256(nil) || h.Sum256() != Sum256(in) {
		t.Error("the zero value is not a plain hasher")
	}
	var fresh Hasher
	a, _ := fresh.MarshalBinary()
	b, _ := New().MarshalBinary()
	if string(a) != string(b) {
		t.Error("the zero value has another state than a new hasher")
	}
}

// HMAC saves and restores the state of its hash after the padded key; that must not change the
// result.
func TestHMAC(t *testing.T) {
	for _, n := range []int{0, 1, 63, 1024, 5000} {
		in := vectors.Pattern(n)
		pad := func(b byte) []byte {
			p := bytes.Repeat([]byte{b}, BlockSize)
			for i := range testKey {
				p[i] ^= testKey[i]
			}
			return p
		}
		inner := Sum256(append(pad(0x36), in...))
		want := Sum256(append(pad(0x5C), inner[:]...))
		mac := hmac.New(func() hash.Hash { return New() }, []byte(testKey))
		for range 3 {
			mac.Reset()
			mac.Write(in)
			if got := mac.Sum(nil); !bytes.Equal(got, want[:]) {
				t.Fatalf("%d bytes: %x, want %x", n, got, want)
			}
		}
	}
}
