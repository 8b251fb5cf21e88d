package blake3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/bulla-dev/bulla/go/internal/vectors"
)

func TestHashReader(t *testing.T) {
	for _, n := range []int{0, 1, 1000, readLen - 1, readLen, readLen + 1, 3*readLen + 7} {
		in := vectors.Pattern(n)
		readers := map[string]io.Reader{
			"plain":      bytes.NewReader(in),
			"half reads": iotest.HalfReader(bytes.NewReader(in)),
			"data error": iotest.DataErrReader(bytes.NewReader(in)),
		}
		for name, r := range readers {
			if sum, err := HashReader(context.Background(), r, nil); err != nil || sum != Sum256(in) {
				t.Errorf("%s of %d bytes: %v", name, n, err)
			}
		}
	}
}

// Copying must take every byte, however many the reader returns at a time.
func TestReadFrom(t *testing.T) {
	in := vectors.Pattern(3*readLen + 7)
	for name, r := range map[string]io.Reader{
		"plain":     struct{ io.Reader }{bytes.NewReader(in)},
		"one bytes": iotest.OneByteReader(bytes.NewReader(in[:40000])),
	} {
		h := New()
		n, err := io.Copy(h, r)
		if err != nil || h.Sum256() != Sum256(in[:n]) || n < 40000 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

// slow gives a byte at a time and cancels the context after some.
type slow struct {
	left   int
	cancel func()
}

func (s *slow) Read(p []byte) (int, error) {
	if s.left--; s.left == 0 {
		s.cancel()
	}
	return copy(p, "x"), nil
}

// A slow stream must not delay the end of the context.
func TestCancellationBetweenReads(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n, err := New().WriteReader(ctx, &slow{1000, cancel}, nil)
	if n != 1000 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d, %v", n, err)
	}
}

// stuck gives some bytes and then neither bytes nor an error.
type stuck struct{ bytes int }

func (s *stuck) Read(p []byte) (int, error) {
	n := min(len(p), s.bytes)
	s.bytes -= n
	return n, nil
}

func TestReadersThatFail(t *testing.T) {
	broken := errors.New("broken")
	cases := []struct {
		name string
		r    io.Reader
		n    int64
		want error
	}{
		{"no progress", &stuck{3000}, 3000, io.ErrNoProgress},
		{"an error", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), 3, broken},
	}
	for _, c := range cases {
		h := New()
		n, err := h.WriteReader(context.Background(), c.r, nil)
		if n != c.n || !errors.Is(err, c.want) {
			t.Errorf("%s: %d, %v", c.name, n, err)
		}
	}
}

// If an error comes together with the last bytes, the bytes must not be lost.
func TestBytesBesideAnError(t *testing.T) {
	h := New()
	r := iotest.DataErrReader(strings.NewReader("abc"))
	if n, err := h.WriteReader(context.Background(), r, nil); n != 3 || err != nil || h.Sum256() != Sum256([]byte("abc")) {
		t.Errorf("%d, %v", n, err)
	}
}

func file(t *testing.T, in []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, in, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHashFile(t *testing.T) {
	for _, n := range []int{0, 1, 5000, readLen, parallelMin - 1, parallelMin, parallelMin + 1, 1 << 20, 9*readLen + 1, 10 * readLen} {
		in := vectors.Pattern(n)
		path := file(t, in)
		for _, workers := range []int{0, 1, 2, 7} {
			var seen []Progress
			opts := ReadOptions{Concurrency: workers, Progress: func(p Progress) { seen = append(seen, p) }}
			sum, err := HashFile(context.Background(), path, &opts)
			if err != nil || sum != Sum256(in) {
				t.Fatalf("%d bytes by %d goroutines: %v", n, workers, err)
			}
			if last := seen[len(seen)-1]; last.Processed != int64(n) || n > 0 && last.Total != int64(n) {
				t.Errorf("%d bytes by %d goroutines: the last progress is %+v", n, workers, last)
			}
		}
	}
}

// A file may follow other input, at any place in the tree.
func TestWriteFileAfterOtherInput(t *testing.T) {
	in := vectors.Pattern(6 * readLen)
	path := file(t, in)
	for _, before := range []int{1, 1024, 16384, 20000, readLen - 1, readLen, readLen + 1, 2 * readLen, 3*readLen - 1024} {
		h, want := New(), New()
		writeAll(h, vectors.Pattern(before), 10000)
		want.Write(vectors.Pattern(before))
		want.Write(in)
		n, err := h.WriteFile(context.Background(), path, &ReadOptions{Concurrency: 3})
		if n != int64(len(in)) || err != nil || h.Sum256() != want.Sum256() {
			t.Errorf("after %d bytes: %d, %v", before, n, err)
		}
	}
}

func TestCancellation(t *testing.T) {
	in := vectors.Pattern(8 * readLen)
	path := file(t, in)
	for _, workers := range []int{1, 3} {
		ctx, cancel := context.WithCancel(context.Background())
		opts := ReadOptions{Concurrency: workers, Progress: func(Progress) { cancel() }}
		if _, err := HashFile(ctx, path, &opts); !errors.Is(err, context.Canceled) {
			t.Errorf("%d goroutines: %v", workers, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := HashReader(ctx, bytes.NewReader(in), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("reader: %v", err)
	}
}

// short is a file that is shorter than its stated length.
type short struct{ io.ReaderAt }

func TestFileThatShrinks(t *testing.T) {
	in := vectors.Pattern(5 * readLen)
	h := New()
	err := h.writeRegular(context.Background(), short{bytes.NewReader(in)}, int64(len(in))+1000, 2, newMeter(nil, -1))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("at the end: %v", err)
	}
	h = New()
	err = h.writeRegular(context.Background(), short{bytes.NewReader(in)}, 2*int64(len(in)), 2, newMeter(nil, -1))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("in a segment: %v", err)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	if _, err := HashFile(context.Background(), filepath.Join(dir, "missing"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	var path *os.PathError
	if _, err := HashFile(context.Background(), dir, nil); !errors.As(err, &path) || path.Path != dir {
		t.Errorf("a folder: %v", err)
	}
}
