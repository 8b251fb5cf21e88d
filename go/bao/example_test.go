package bao_test

import (
	"bytes"
	"fmt"
	"io"
	"log"

	"github.com/bulla-dev/bulla/go/bao"
)

// Read and check a part of a large file, with only the hash of the whole file.
func Example() {
	file := bytes.Repeat([]byte("0123456789"), 1000)
	outboard, hash := bao.EncodeOutboard(file)

	var slice bytes.Buffer
	err := bao.ExtractSliceOutboard(&slice, bytes.NewReader(file), bytes.NewReader(outboard), 5000, 10)
	if err != nil {
		log.Fatal(err)
	}
	part, err := io.ReadAll(bao.NewSliceDecoder(&slice, hash, 5000, 10))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", part)
	// Output: 0123456789
}
