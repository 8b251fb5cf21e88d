package blake3_test

import (
	"fmt"
	"hash"
	"io"

	// The one line that a program changes; it was "github.com/zeebo/blake3".
	"github.com/bulla-dev/bulla/go/blake3"
)

// A program written for github.com/zeebo/blake3. Its output is that of version 0.2.4 of that
// package.
func Example_fromZeebo() {
	var sum32 [32]byte = blake3.Sum256([]byte("abc"))
	var sum64 [64]byte = blake3.Sum512([]byte("abc"))
	fmt.Printf("%x %x\n", sum32[:4], sum64[60:])

	var h *blake3.Hasher = blake3.New()
	var _ hash.Hash = h
	n, err := h.WriteString("abc")
	fmt.Println(n, err, h.Size(), h.BlockSize())
	c := h.Clone()
	h.Reset()
	fmt.Printf("%x %x\n", h.Sum(nil)[:4], c.Sum(nil)[:4])

	k, err := blake3.NewKeyed(make([]byte, 32))
	k.Write([]byte("abc"))
	fmt.Printf("%x %v\n", k.Sum(nil)[:4], err)
	_, err = blake3.NewKeyed(make([]byte, 31))
	fmt.Println(err != nil)

	out := make([]byte, 4)
	blake3.DeriveKey("context", []byte("material"), out)
	d := blake3.NewDeriveKey("context")
	d.Write([]byte("material"))
	fmt.Printf("%x %x\n", out, d.Sum(nil)[:4])

	var digest *blake3.Digest = c.Digest()
	position, err := digest.Seek(100, io.SeekStart)
	fmt.Println(position, err)
	n, err = digest.Read(out)
	fmt.Printf("%d %v %x\n", n, err, out)
	// Output:
	// 6437b3ac 3374bf0b
	// 3 <nil> 32 64
	// af1349b9 6437b3ac
	// a77fc933 <nil>
	// true
	// 1fbf6807 1fbf6807
	// 100 <nil>
	// 4 <nil> 3384f2f1
}
