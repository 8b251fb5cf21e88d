package blake3_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/reference"
	"github.com/bulla-dev/bulla/go/internal/vectors"

	// The one line that a program changes; it was "lukechampine.com/blake3".
	"github.com/bulla-dev/bulla/go/compat/lukechampine"
)

// A program written for lukechampine.com/blake3.
func Example() {
	sum := blake3.Sum256([]byte("abc"))
	fmt.Printf("%x\n", sum[:8])

	h := blake3.New(16, bytes.Repeat([]byte{7}, 32))
	io.WriteString(h, "abc")
	fmt.Printf("%d %d %x\n", h.Size(), h.BlockSize(), h.Sum(nil))

	key := make([]byte, 8)
	blake3.DeriveKey(key, "example.com 2026-01-01 session tokens", []byte("source"))
	fmt.Printf("%x\n", key)
	// Output:
	// 6437b3ac38465133
	// 16 64 b1495225f01fa8cd09e410d288d09b68
	// 25fb1d0c485ea395
}

func TestAgainstVectors(t *testing.T) {
	var file struct {
		Key   string
		Cases []struct {
			InputLen  int `json:"input_len"`
			Hash      string
			KeyedHash string `json:"keyed_hash"`
			DeriveKey string `json:"derive_key"`
		}
		Context string `json:"context_string"`
	}
	vectors.Read(t, "blake3.json", &file)
	for _, c := range file.Cases {
		in := vectors.Pattern(c.InputLen)
		n := len(c.Hash) / 2
		plain, keyed := blake3.New(n, nil), blake3.New(n, []byte(file.Key))
		for want, h := range map[string]hash.Hash{c.Hash: plain, c.KeyedHash: keyed} {
			h.Write([]byte("forgotten"))
			h.Reset()
			h.Write(in)
			if got := hex.EncodeToString(h.Sum([]byte{1})[1:]); got != want {
				t.Errorf("%d bytes: %s, want %s", len(in), got, want)
			}
		}
		out := make([]byte, n)
		plain.XOF().Read(out)
		sum := blake3.Sum512(in)
		if hex.EncodeToString(out) != c.Hash || !bytes.Equal(sum[:], out[:64]) {
			t.Errorf("%d bytes: XOF or Sum512 is wrong", len(in))
		}
		if blake3.DeriveKey(out, file.Context, in); hex.EncodeToString(out) != c.DeriveKey {
			t.Errorf("%d bytes: DeriveKey is wrong", len(in))
		}
	}
}

func TestSeek(t *testing.T) {
	r := blake3.New(0, nil).XOF()
	for _, s := range []struct {
		offset int64
		whence int
		want   int64
		fails  bool
	}{
		{10, io.SeekStart, 10, false},
		{-11, io.SeekCurrent, 0, true},
		{-10, io.SeekCurrent, 0, false},
		{-1, io.SeekStart, 0, true},
		{-5, io.SeekEnd, -6, false},
		{6, io.SeekCurrent, 0, true},
	} {
		if got, err := r.Seek(s.offset, s.whence); got != s.want || (err != nil) != s.fails {
			t.Errorf("%+v: %d, %v", s, got, err)
		}
	}
	if n, err := r.Read(make([]byte, 10)); n != 5 || err != nil {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

func TestBao(t *testing.T) {
	in := vectors.Pattern(10000)
	whole, root := blake3.BaoEncodeBuf(in, false)
	tree, _ := blake3.BaoEncodeBuf(in, true)
	if len(whole) != blake3.BaoEncodedSize(len(in), false) || len(tree) != blake3.BaoEncodedSize(len(in), true) {
		t.Error("BaoEncodedSize is wrong")
	}
	if !blake3.BaoVerifyBuf(whole, nil, root) || !blake3.BaoVerifyBuf(in, tree, root) {
		t.Error("a good encoding is refused")
	}
	in[5000] ^= 1
	if blake3.BaoVerifyBuf(in, tree, root) {
		t.Error("a bad input is accepted")
	}
	in[5000] ^= 1
	f, err := os.Create(filepath.Join(t.TempDir(), "encoding"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := blake3.BaoEncode(f, bytes.NewReader(in), int64(len(in)), false); got != root || err != nil {
		t.Errorf("BaoEncode: %x, %v", got, err)
	}
	var out bytes.Buffer
	ok, err := blake3.BaoDecode(&out, bytes.NewReader(whole), nil, root)
	if !ok || err != nil || !bytes.Equal(out.Bytes(), in) {
		t.Errorf("BaoDecode: %v, %v", ok, err)
	}
}

// writesOf are lengths of writes that leave a hasher in each of its states: a part of a chunk,
// whole chunks, many of them.
var writesOf = []int{0, 1, 1000, 1024, 1025, 2048, 5000, 16384, 40000, 300000}

func TestCopiesOfAHasher(t *testing.T) {
	in := vectors.Pattern(1 << 20)
	for _, first := range writesOf {
		for _, second := range writesOf {
			h := blake3.New(32, nil)
			h.Write(in[:first])
			c := *h
			h.Write(in[first : first+second])
			c.Write(in[7 : 7+second])
			h.Write(in[first+second:][:3000])
			c.Write(in[:1500])
			want := [][]byte{
				sum(in[:first+second+3000]),
				sum(in[:first], in[7:7+second], in[:1500]),
			}
			if !bytes.Equal(h.Sum(nil), want[0]) || !bytes.Equal(c.Sum(nil), want[1]) {
				t.Errorf("copied after %d bytes, %d more: the hasher or its copy is wrong", first, second)
			}
			c.Reset()
			if c.Write(in[:first]); !bytes.Equal(c.Sum(nil), sum(in[:first])) || !bytes.Equal(h.Sum(nil), want[0]) {
				t.Errorf("copied after %d bytes, reset: the hasher or its copy is wrong", first)
			}
		}
	}
}

// sum is the hash of all parts, by the reference.
func sum(parts ...[]byte) []byte {
	return reference.Sum(reference.IV, slices.Concat(parts...), reference.Hash, 0, 32)
}

func TestCopiesOfAnOutputReader(t *testing.T) {
	want := reference.Sum(reference.IV, []byte("abc"), reference.Hash, 0, 4000)
	h := blake3.New(0, nil)
	h.Write([]byte("abc"))
	r := h.XOF()
	got, again := make([]byte, 1500), make([]byte, 1500)
	r.Read(got[:1000])
	c := *r
	r.Read(got[1000:])
	c.Read(again)
	if !bytes.Equal(got, want[:1500]) || !bytes.Equal(again, want[1000:2500]) {
		t.Error("a reader and its copy are not independent")
	}
}

// The zero hasher hashes with a key of zeros, without the keyed mode's flag, to empty digests.
func TestZeroHasher(t *testing.T) {
	in := vectors.Pattern(20000)
	for _, n := range []int{0, 3, 1024, 2048, len(in)} {
		var h blake3.Hasher
		h.Write(in[:n])
		if h.Size() != 0 || len(h.Sum(nil)) != 0 || h.BlockSize() != 64 {
			t.Errorf("%d bytes: the digest has %d bytes", n, len(h.Sum(nil)))
		}
		out := make([]byte, 100)
		h.XOF().Read(out)
		if want := reference.Sum([8]uint32{}, in[:n], reference.Hash, 0, len(out)); !bytes.Equal(out, want) {
			t.Errorf("%d bytes: %x, want %x", n, out, want)
		}
	}
}

// Lengths of writes around those of chunks and of groups of them, in each mode.
func TestWritesOfAnyLength(t *testing.T) {
	in := vectors.Pattern(70000)
	key := []byte("whats the Elvish word for friend")
	for _, step := range []int{1, 63, 64, 1000, 1023, 1024, 1025, 2048, 3000, 16384, 16385, 20480, 69632, 70000} {
		plain, keyed := blake3.New(32, nil), blake3.New(32, key)
		for at := 0; at < len(in); {
			n := min(step, len(in)-at)
			plain.Write(in[at : at+n])
			keyed.Write(in[at : at+n])
			at += n
			if step < 1000 && at%4999 != 0 && at < len(in) {
				continue
			}
			want := reference.Sum(reference.Key(key), in[:at], reference.KeyedHash, 0, 32)
			if !bytes.Equal(plain.Sum(nil), sum(in[:at])) || !bytes.Equal(keyed.Sum(nil), want) {
				t.Fatalf("%d bytes in writes of %d: wrong", at, step)
			}
		}
	}
}

// Bytes after the content or the encoding are refused, and so are cut-off ones.
func TestBaoVerifyBufTakesTheWholeOnly(t *testing.T) {
	for _, size := range []int{0, 1, 1024, 1025, 10000} {
		in := vectors.Pattern(size)
		whole, root := blake3.BaoEncodeBuf(in, false)
		tree, _ := blake3.BaoEncodeBuf(in, true)
		for _, c := range []struct {
			name           string
			data, outboard []byte
			want           bool
		}{
			{"combined", whole, nil, true},
			{"combined, and a byte", append(bytes.Clone(whole), 0), nil, false},
			{"combined twice", append(bytes.Clone(whole), whole...), nil, false},
			{"combined, cut", whole[:len(whole)-1], nil, false},
			{"outboard", in, tree, true},
			{"outboard, and a byte", in, append(bytes.Clone(tree), 0), false},
			{"outboard, a byte of content more", append(bytes.Clone(in), 0), tree, false},
			{"outboard, cut", in, tree[:len(tree)-1], false},
			{"outboard of no bytes", in, []byte{}, false},
		} {
			if got := blake3.BaoVerifyBuf(c.data, c.outboard, root); got != c.want {
				t.Errorf("%d bytes, %s: %v", size, c.name, got)
			}
		}
	}
}

func TestWrongKey(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a key of 5 bytes is accepted")
		}
	}()
	blake3.New(32, make([]byte, 5))
}
