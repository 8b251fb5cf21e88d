// Package vectors reads the test vectors that all languages share. Only tests use it.
//
// The folder testdata has copies of files of spec/vectors: a module is fetched without the folders
// above it, and its tests must pass there too. `cargo xtask test go` checks that the copies are the
// same.
package vectors

import (
	"embed"
	"encoding/json"
	"testing"
)

//go:embed testdata/*.json
var files embed.FS

// Read reads the file with this name.
func Read(t testing.TB, name string, into any) {
	t.Helper()
	text, err := files.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// Pattern is the input of n bytes of every vector.
func Pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}
