package bao

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strconv"
	"testing"
	"testing/iotest"

	"github.com/bulla-dev/bulla/go/blake3"
	"github.com/bulla-dev/bulla/go/internal/guts"
	"github.com/bulla-dev/bulla/go/internal/reference"
	"github.com/bulla-dev/bulla/go/internal/vectors"
)

// summary is the form in which the vectors give bytes.
type summary struct {
	Len  int
	Hash string
}

func (s summary) check(t *testing.T, what string, b []byte) {
	t.Helper()
	if sum := blake3.Sum256(b); len(b) != s.Len || hex.EncodeToString(sum[:]) != s.Hash {
		t.Errorf("%s: %d bytes with hash %x, want %d with %s", what, len(b), sum, s.Len, s.Hash)
	}
}

// writerAt is a file in memory that grows.
type writerAt struct{ b []byte }

func (w *writerAt) WriteAt(p []byte, at int64) (int, error) {
	if n := int(at) + len(p); n > len(w.b) {
		w.b = append(w.b, make([]byte, n-len(w.b))...)
	}
	return copy(w.b[at:], p), nil
}

func TestVectors(t *testing.T) {
	var file struct {
		Cases []struct {
			InputLen           int `json:"input_len"`
			Hash               string
			Combined, Outboard summary
			Slices             []struct {
				Start, Len string
				Slice      summary
			}
		}
	}
	vectors.Read(t, "bao.json", &file)
	if len(file.Cases) < 16 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for _, k := range guts.Available() {
		restore := guts.Force(k)
		for _, c := range file.Cases {
			name := k.String() + ", " + strconv.Itoa(c.InputLen) + " bytes"
			in := vectors.Pattern(c.InputLen)
			whole, hash := Encode(in)
			if hex.EncodeToString(hash[:]) != c.Hash || int64(len(whole)) != EncodedSize(int64(len(in))) {
				t.Fatalf("%s: hash %x", name, hash)
			}
			c.Combined.check(t, name, whole)
			tree, _ := EncodeOutboard(in)
			c.Outboard.check(t, name+", outboard", tree)
			if int64(len(tree)) != OutboardSize(int64(len(in))) {
				t.Errorf("%s: OutboardSize is wrong", name)
			}
			checkStreamed(t, name, in, whole, tree, hash)
			for _, s := range c.Slices {
				start, _ := strconv.ParseUint(s.Start, 10, 64)
				n, _ := strconv.ParseUint(s.Len, 10, 64)
				s.Slice.check(t, name+", slice "+s.Start+" "+s.Len, checkSlice(t, in, whole, tree, hash, start, n))
			}
		}
		restore()
	}
}

func checkStreamed(t *testing.T, name string, in, whole, tree []byte, hash [32]byte) {
	t.Helper()
	var w, o writerAt
	h, err := EncodeTo(&w, iotest.HalfReader(bytes.NewReader(in)), int64(len(in)))
	if err != nil || h != hash || !bytes.Equal(w.b, whole) {
		t.Errorf("%s: EncodeTo is wrong: %v", name, err)
	}
	h, err = EncodeOutboardTo(&o, bytes.NewReader(in), int64(len(in)))
	if err != nil || h != hash || !bytes.Equal(o.b, tree) {
		t.Errorf("%s: EncodeOutboardTo is wrong: %v", name, err)
	}
	for what, d := range map[string]io.Reader{
		"combined": NewDecoder(bytes.NewReader(whole), hash),
		"outboard": NewOutboardDecoder(bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(tree)), hash),
	} {
		if got, err := io.ReadAll(d); err != nil || !bytes.Equal(got, in) {
			t.Errorf("%s, %s: %d bytes, %v", name, what, len(got), err)
		}
	}
}

// part returns the n bytes of in from start on, or fewer if in ends earlier. Nothing here can
// overflow.
func part(in []byte, start, n uint64) []byte {
	if start >= uint64(len(in)) {
		return nil
	}
	in = in[start:]
	if n >= uint64(len(in)) {
		return in
	}
	return in[:n]
}

// checkSlice extracts a slice in both ways, decodes it, and returns it.
func checkSlice(t *testing.T, in, whole, tree []byte, hash [32]byte, start, n uint64) []byte {
	t.Helper()
	var slice, other bytes.Buffer
	if err := ExtractSlice(&slice, bytes.NewReader(whole), start, n); err != nil {
		t.Fatal(err)
	}
	if err := ExtractSliceOutboard(&other, bytes.NewReader(in), bytes.NewReader(tree), start, n); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(slice.Bytes(), other.Bytes()) {
		t.Errorf("%d bytes, slice %d %d: outboard differs", len(in), start, n)
	}
	want := part(in, start, n)
	got, err := io.ReadAll(NewSliceDecoder(bytes.NewReader(slice.Bytes()), hash, start, n))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, slice %d %d: %d bytes, %v", len(in), start, n, len(got), err)
	}
	return slice.Bytes()
}

// referenceSlice returns the slice of a part of in, by the description of the format and the
// reference. An empty part counts as one byte, and a part that begins past the end counts as the
// last byte.
func referenceSlice(in []byte, start, n uint64) []byte {
	last := uint64(max(1, len(in)) - 1)
	from, to := min(start, last), last
	if more := max(n, 1) - 1; start < last && more < last-start {
		to = start + more
	}
	slice := binary.LittleEndian.AppendUint64(nil, uint64(len(in)))
	var add func(at uint64, in []byte)
	add = func(at uint64, in []byte) {
		if len(in) > 0 && (at > to || at+uint64(len(in)) <= from) {
			return
		}
		if len(in) <= 1024 {
			slice = append(slice, in...)
			return
		}
		left := 1024
		for 2*left < len(in) {
			left *= 2
		}
		children := []struct {
			at uint64
			in []byte
		}{{at, in[:left]}, {at + uint64(left), in[left:]}}
		for _, c := range children {
			for _, word := range reference.ChainingValue(reference.IV, c.in, c.at/1024, reference.Hash) {
				slice = binary.LittleEndian.AppendUint32(slice, word)
			}
		}
		for _, c := range children {
			add(c.at, c.in)
		}
	}
	add(0, in)
	return slice
}

// Empty parts, parts that touch the ends of chunks and of the input, and parts whose end does not
// fit into a uint64.
func TestSlicesAtTheEdges(t *testing.T) {
	const most = math.MaxUint64
	for _, size := range []int{0, 1, 1024, 1025, 2048, 5000, 20000} {
		in := vectors.Pattern(size)
		whole, hash := Encode(in)
		tree, _ := EncodeOutboard(in)
		if !bytes.Equal(whole, referenceSlice(in, 0, most)) {
			t.Fatalf("%d bytes: the encoding is wrong", size)
		}
		end := uint64(size)
		for _, start := range []uint64{0, 1, 1023, 1024, 1025, 2047, 2048, 4095, end - 1, end, end + 1, 1 << 63, most - 1, most} {
			for _, n := range []uint64{0, 1, 2, 1023, 1024, 1025, end, end - start, end - start + 1, most - start, most - start + 1, most - 1, most} {
				slice := checkSlice(t, in, whole, tree, hash, start, n)
				if want := referenceSlice(in, start, n); !bytes.Equal(slice, want) {
					t.Errorf("%d bytes, slice %d %d: %d bytes, want %d", size, start, n, len(slice), len(want))
				}
			}
		}
	}
}

// Every changed byte of an encoding must be detected, and no wrong byte may be returned before.
func TestChangedEncodings(t *testing.T) {
	for _, n := range []int{0, 1, 1024, 1025, 5000} {
		in := vectors.Pattern(n)
		whole, hash := Encode(in)
		for i := range whole {
			bad := bytes.Clone(whole)
			bad[i] ^= 1
			got, err := io.ReadAll(NewDecoder(bytes.NewReader(bad), hash))
			if err == nil || !bytes.HasPrefix(in, got) {
				t.Fatalf("%d bytes, byte %d changed: %d bytes, %v", n, i, len(got), err)
			}
		}
		for i := range whole {
			got, err := io.ReadAll(NewDecoder(bytes.NewReader(whole[:i]), hash))
			if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(in, got) {
				t.Fatalf("%d bytes, cut to %d: %d bytes, %v", n, i, len(got), err)
			}
		}
	}
}

func TestWrongHash(t *testing.T) {
	whole, hash := Encode(nil)
	hash[0] ^= 1
	if _, err := io.ReadAll(NewDecoder(bytes.NewReader(whole), hash)); !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
}

func TestImpossibleLength(t *testing.T) {
	b := bytes.Repeat([]byte{0xFF}, 100)
	if _, err := io.ReadAll(NewDecoder(bytes.NewReader(b), [32]byte{})); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
	if err := ExtractSlice(io.Discard, bytes.NewReader(b), 0, 10); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
	if _, err := EncodeTo(&writerAt{}, nil, -1); !errors.Is(err, ErrLength) {
		t.Error(err)
	}
}

// The maximum length of an input is not an impossible length. The error is that the input is
// missing.
func TestLargestLength(t *testing.T) {
	const largest = math.MaxInt64 / 2
	for _, c := range []struct {
		len  uint64
		want error
	}{{largest, io.ErrUnexpectedEOF}, {largest + 1, ErrLength}, {math.MaxUint64, ErrLength}} {
		header := binary.LittleEndian.AppendUint64(nil, c.len)
		if _, err := io.ReadAll(NewDecoder(bytes.NewReader(header), [32]byte{})); !errors.Is(err, c.want) {
			t.Errorf("decoding %d bytes: %v", c.len, err)
		}
		if err := ExtractSlice(io.Discard, bytes.NewReader(header), 0, 10); !errors.Is(err, c.want) {
			t.Errorf("a slice of %d bytes: %v", c.len, err)
		}
		if _, err := EncodeTo(&writerAt{}, bytes.NewReader(nil), int64(c.len)); !errors.Is(err, c.want) {
			t.Errorf("encoding %d bytes: %v", c.len, err)
		}
	}
}

func TestShortInput(t *testing.T) {
	if _, err := EncodeTo(&writerAt{}, bytes.NewReader(make([]byte, 99)), 100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	in := vectors.Pattern(5000)
	whole, hash := Encode(in)
	f.Add(whole, uint64(0), uint64(5000))
	f.Add(whole[:100], uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, b []byte, start, n uint64) {
		if got, err := io.ReadAll(NewDecoder(bytes.NewReader(b), hash)); err == nil && !bytes.Equal(got, in) {
			t.Error("accepted a wrong encoding")
		}
		want := part(in, start, n)
		got, err := io.ReadAll(NewSliceDecoder(bytes.NewReader(b), hash, start, n))
		if !bytes.HasPrefix(want, got) || err == nil && len(got) != len(want) {
			t.Error("accepted a wrong slice")
		}
		ExtractSlice(io.Discard, bytes.NewReader(b), start, n)
	})
}
