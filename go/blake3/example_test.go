package blake3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/bulla-dev/bulla/go/blake3"
)

func ExampleSum256() {
	fmt.Printf("%x\n", blake3.Sum256([]byte("abc")))
	// Output: 6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85
}

func ExampleHasher() {
	h := blake3.New()
	h.WriteString("a")
	h.WriteString("bc")
	fmt.Printf("%x\n", h.Sum(nil))
	// Output: 6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85
}

func ExampleSumKeyed() {
	key := [32]byte{1, 2, 3}
	fmt.Printf("%x\n", blake3.SumKeyed(&key, []byte("abc")))
	// Output: 0f5345a7cb565a79379946fb9a495905fe12ba184434915149b898f053eebca6
}

func ExampleDeriveKey() {
	key := make([]byte, 16)
	blake3.DeriveKey("example.com 2026-01-01 session tokens", []byte("a secret of high entropy"), key)
	fmt.Printf("%x\n", key)
	// Output: 705c44a33b692e07f47caa0f312cdc3a
}

func ExampleSumMany() {
	out := make([][32]byte, 2)
	blake3.SumMany([][]byte{[]byte("abc"), nil}, out)
	fmt.Printf("%x\n%x\n", out[0][:8], out[1][:8])
	// Output:
	// 6437b3ac38465133
	// af1349b9f5f9a1a6
}

func ExampleHasher_Digest() {
	h := blake3.New()
	h.WriteString("abc")
	r := h.Digest()
	if _, err := r.Seek(1000, io.SeekStart); err != nil {
		log.Fatal(err)
	}
	out := make([]byte, 8)
	if _, err := io.ReadFull(r, out); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%x\n", out)
	// Output: c5ff1de33e0b3004
}

func ExampleHasher_MarshalBinary() {
	h := blake3.New()
	h.WriteString("a")
	state, err := h.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	later := blake3.New()
	if err := later.UnmarshalBinary(state); err != nil {
		log.Fatal(err)
	}
	later.WriteString("bc")
	fmt.Printf("%x\n", later.Sum(nil)[:8])
	// Output: 6437b3ac38465133
}

func ExampleHasher_WriteReader() {
	opts := blake3.ReadOptions{Progress: func(p blake3.Progress) {
		if p.Processed == p.Total {
			fmt.Println("read", p.Processed, "of", p.Total)
		}
	}, Total: 3}
	h := blake3.New()
	n, err := h.WriteReader(context.Background(), io.MultiReader(strings.NewReader("ab"), bytes.NewReader([]byte("c"))), &opts)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes: %x\n", n, h.Sum(nil)[:8])
	// Output:
	// read 3 of 3
	// 3 bytes: 6437b3ac38465133
}
