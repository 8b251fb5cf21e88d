package peers

//lint:file-ignore SA1019 What is deprecated must give the same as the original too.

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	ours "github.com/bulla-dev/bulla/go/compat/lukechampine"
	theirs "lukechampine.com/blake3"
)

// Intact, shortened, lengthened, changed and mixed-up encodings get the same verdict from both.
func TestBao(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	for _, size := range []int{0, 1, 1000, 1024, 1025, 2048, 10000, 70000} {
		in := pattern(size)
		for _, outboard := range []bool{false, true} {
			got, root := ours.BaoEncodeBuf(in, outboard)
			want, theirRoot := theirs.BaoEncodeBuf(in, outboard)
			if !bytes.Equal(got, want) || root != theirRoot {
				t.Fatalf("%d bytes, outboard %v: another encoding or hash", size, outboard)
			}
			if got, want := ours.BaoEncodedSize(size, outboard), theirs.BaoEncodedSize(size, outboard); got != want {
				t.Errorf("%d bytes, outboard %v: a size of %d, theirs %d", size, outboard, got, want)
			}
		}
		whole, root := ours.BaoEncodeBuf(in, false)
		tree, _ := ours.BaoEncodeBuf(in, true)
		for range 300 {
			data, outboard := damaged(r, whole), []byte(nil)
			if r.IntN(2) == 0 {
				data, outboard = damaged(r, in), damaged(r, tree)
			}
			if got, want := ours.BaoVerifyBuf(data, outboard, root), theirs.BaoVerifyBuf(data, outboard, root); got != want {
				t.Fatalf("%d bytes, %d and %d: %v, theirs %v", size, len(data), len(outboard), got, want)
			}
			var tree, theirTree io.Reader
			if outboard != nil {
				tree, theirTree = bytes.NewReader(outboard), bytes.NewReader(outboard)
			}
			var out, theirOut bytes.Buffer
			got, err := ours.BaoDecode(&out, bytes.NewReader(data), tree, root)
			want, theirErr := theirs.BaoDecode(&theirOut, bytes.NewReader(data), theirTree, root)
			if got != want || (err == nil) != (theirErr == nil) || !bytes.Equal(out.Bytes(), theirOut.Bytes()) {
				t.Fatalf("%d bytes: decoded %v and %v, theirs %v and %v", size, got, err, want, theirErr)
			}
		}
	}
}

// damaged is b, or b with a byte changed, bytes cut off or bytes added. It is never nil. The length
// at the beginning stays small enough for their memory.
func damaged(r *rand.Rand, b []byte) []byte {
	b = append([]byte{}, b...)
	switch r.IntN(5) {
	case 0:
		if len(b) > 8 {
			b[8+r.IntN(len(b)-8)] ^= 1 << r.IntN(8)
		}
	case 1:
		b = b[:r.IntN(len(b)+1)]
	case 2:
		b = append(b, pattern(1+r.IntN(100))...)
	}
	return b
}
