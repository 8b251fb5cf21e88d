package blake3_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/vectors"

	// The one line that a program changes; it was "lukechampine.com/blake3".
	"github.com/bulla-dev/bulla/go/compat/lukechampine"
)

// A program as it is written for lukechampine.com/blake3.
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

func TestWrongKey(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a key of 5 bytes is accepted")
		}
	}()
	blake3.New(32, make([]byte, 5))
}
