package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The generated files in the tree must equal the output of this program.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "guts", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not current (%v): run `go run . ../guts` in go/internal/asmgen", name, err)
		}
	}
}

// The plan must give each half round the message words of the schedule, lane by lane.
func TestPlan(t *testing.T) {
	vectors := map[int][4]int{}
	for q := range 4 {
		vectors[q] = [4]int{4 * q, 4*q + 1, 4*q + 2, 4*q + 3}
	}
	halves := 0
	for i, s := range plan {
		if s.kind == shuffle {
			a, b := vectors[s.a], vectors[s.b]
			vectors[s.to] = [4]int{a[s.order&3], a[s.order>>2&3], b[s.order>>4&3], b[s.order>>6]}
			continue
		}
		if s.order != halves%4 {
			t.Errorf("step %d: half round %d out of order", i, s.order)
		}
		for lane, k := range rowWords[s.order] {
			if want := schedule[halves/4][k]; vectors[s.to][lane] != want {
				t.Errorf("step %d, lane %d: word %d, want %d", i, lane, vectors[s.to][lane], want)
			}
		}
		halves++
	}
	if halves != 28 {
		t.Errorf("%d half rounds", halves)
	}
}
