package peers

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	ours "github.com/bulla-dev/bulla/go/compat/lukechampine"
	theirs "lukechampine.com/blake3"
)

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

// hasher is the common interface of both hashers.
type hasher interface {
	Write([]byte) (int, error)
	Sum([]byte) []byte
	Reset()
	Size() int
	BlockSize() int
}

func same(t *testing.T, what string, a, b hasher) {
	t.Helper()
	if got, want := a.Sum([]byte("before")), b.Sum([]byte("before")); !bytes.Equal(got, want) {
		t.Fatalf("%s: %x, theirs is %x", what, got, want)
	}
	if a.Size() != b.Size() || a.BlockSize() != b.BlockSize() {
		t.Fatalf("%s: sizes %d and %d, theirs are %d and %d", what, a.Size(), a.BlockSize(), b.Size(), b.BlockSize())
	}
}

// pairOf is one of our hashers and their equivalent.
type pairOf struct {
	a ours.Hasher
	b theirs.Hasher
}

func (p *pairOf) write(in []byte) { p.a.Write(in); p.b.Write(in) }

// Writes, copies and resets in any order, of hashers of each kind, the zero value included.
func TestHashers(t *testing.T) {
	in := pattern(1 << 20)
	key := in[100:132]
	r := rand.New(rand.NewPCG(21, 22))
	for round := range 300 {
		var start pairOf
		switch round % 4 {
		case 0:
			start = pairOf{*ours.New(32, nil), *theirs.New(32, nil)}
		case 1:
			start = pairOf{*ours.New(100, key), *theirs.New(100, key)}
		case 2:
			start = pairOf{*ours.New(0, key), *theirs.New(0, key)}
		}
		pairs := []pairOf{start}
		for range 1 + r.IntN(12) {
			p := &pairs[r.IntN(len(pairs))]
			switch r.IntN(8) {
			case 0:
				p.a.Reset()
				p.b.Reset()
			case 1, 2:
				pairs = append(pairs, *p)
			default:
				n := r.IntN(1 << (1 + r.IntN(18)))
				if r.IntN(2) == 0 {
					n &^= 1023
				}
				at := r.IntN(len(in) - n + 1)
				p.write(in[at : at+n])
			}
		}
		for i := range pairs {
			p := &pairs[i]
			same(t, fmt.Sprintf("round %d, pair %d", round, i), &p.a, &p.b)
			got, want := make([]byte, 3000), make([]byte, 3000)
			p.a.XOF().Read(got)
			if p.b.XOF().Read(want); !bytes.Equal(got, want) {
				t.Fatalf("round %d, pair %d: the output differs", round, i)
			}
		}
	}
}

func TestSumsAndKeys(t *testing.T) {
	in := pattern(100000)
	for n := 0; n < len(in); n += 1 + n/10 {
		if ours.Sum256(in[:n]) != theirs.Sum256(in[:n]) || ours.Sum512(in[:n]) != theirs.Sum512(in[:n]) {
			t.Errorf("%d bytes: a sum differs", n)
		}
		got, want := make([]byte, n%300), make([]byte, n%300)
		ours.DeriveKey(got, "peers 2026", in[:n])
		if theirs.DeriveKey(want, "peers 2026", in[:n]); !bytes.Equal(got, want) {
			t.Errorf("%d bytes: the derived key differs", n)
		}
	}
}

// Reads of any length and seeks, of readers and their copies. Positions are multiples of 1024: at
// other positions, theirs continues with wrong bytes (TestTheirSeek).
func TestOutputReaders(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	a, b := ours.New(0, nil), theirs.New(0, nil)
	a.Write([]byte("abc"))
	b.Write([]byte("abc"))
	type pair struct {
		a ours.OutputReader
		b theirs.OutputReader
	}
	pairs := []pair{{*a.XOF(), *b.XOF()}}
	for range 1000 {
		p := &pairs[r.IntN(len(pairs))]
		switch r.IntN(10) {
		case 0:
			pairs = append(pairs, *p)
		case 1:
			offset := int64(r.Uint64()>>(1+r.IntN(60))) &^ 1023
			if r.IntN(20) == 0 {
				offset = math.MaxInt64 &^ 1023
			}
			got, err := p.a.Seek(offset, io.SeekStart)
			want, theirErr := p.b.Seek(offset, io.SeekStart)
			if got != want || err != nil || theirErr != nil {
				t.Fatalf("seek to %d: %d and %v, theirs %d and %v", offset, got, err, want, theirErr)
			}
		default:
			got, want := make([]byte, r.IntN(5000)), make([]byte, 0)
			want = slices.Grow(want, len(got))[:len(got)]
			n, err := p.a.Read(got)
			m, theirErr := p.b.Read(want)
			if n != m || err != theirErr || !bytes.Equal(got, want) {
				t.Fatalf("read of %d: %d and %v, theirs %d and %v, or other bytes", len(got), n, err, m, theirErr)
			}
		}
	}
}

// MIGRATION.md says about their Seek: from a position inside a kibibyte, it returns other bytes
// than a read up to there. If this test fails, their fault is fixed, and the document and
// TestOutputReaders can change.
func TestTheirSeek(t *testing.T) {
	all, ourPart, theirPart := make([]byte, 200), make([]byte, 100), make([]byte, 100)
	theirs.New(0, nil).XOF().Read(all)
	a, b := ours.New(0, nil).XOF(), theirs.New(0, nil).XOF()
	a.Seek(100, io.SeekStart)
	b.Seek(100, io.SeekStart)
	a.Read(ourPart)
	b.Read(theirPart)
	if !bytes.Equal(ourPart, all[100:]) {
		t.Error("ours is not what a read gives")
	}
	if bytes.Equal(theirPart, all[100:]) {
		t.Error("theirs is what a read gives")
	}
}
