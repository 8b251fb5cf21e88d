package blake3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

const (
	// readLen is the length of a read: long enough to feed the widest kernel and to cost few calls,
	// short enough to be hashed while it is in the second-level cache.
	readLen = 256 << 10
	// noProgressMost is how many empty reads in a row are tolerated.
	noProgressMost = 100
	// progressEvery is the minimum time between two calls of a progress function, except for the last
	// call.
	progressEvery = 50 * time.Millisecond
)

// Progress reports how much was read.
type Progress struct {
	Processed int64         // bytes hashed so far
	Total     int64         // bytes in all, or -1 if that is not known
	Elapsed   time.Duration // since reading began
}

// ReadOptions are the options of the calls that read their input. A nil pointer means the zero
// value.
type ReadOptions struct {
	// Progress, if not nil, is called in the caller's goroutine: after the first read, then at most
	// every 50 milliseconds, and when reading has ended without an error.
	Progress func(Progress)
	// Total is the length that the progress of a reader reports, if it is above 0. Files report their
	// own length.
	Total int64
	// Concurrency is the number of goroutines that may read and hash a regular file, each at its own
	// place. 0 means GOMAXPROCS. 1 is better for a hard disk. Only the caller's goroutine reads
	// readers.
	Concurrency int
}

// buffers has the buffers for calls that read.
var buffers = sync.Pool{New: func() any { return new([readLen]byte) }}

// WriteReader absorbs r to its end, and returns the number of bytes. It ends early with the error
// of r, with the error of ctx when ctx is done, or with [io.ErrNoProgress] if r repeatedly returns
// neither bytes nor an error. The hasher has then absorbed everything that was read so far.
func (h *Hasher) WriteReader(ctx context.Context, r io.Reader, opts *ReadOptions) (int64, error) {
	m := newMeter(opts, -1)
	buf := buffers.Get().(*[readLen]byte)
	used := 0
	defer func() {
		clear(buf[:used])
		buffers.Put(buf)
	}()
	for empty := 0; empty < noProgressMost; {
		if err := ctx.Err(); err != nil {
			return m.at.Processed, err
		}
		n, err := r.Read(buf[:])
		if n < 0 || n > len(buf) {
			return m.at.Processed, errors.New("blake3: the reader returned an impossible count")
		}
		used = max(used, n)
		h.Write(buf[:n])
		m.add(n)
		switch {
		case err == io.EOF:
			m.finish()
			return m.at.Processed, nil
		case err != nil:
			return m.at.Processed, err
		case n == 0:
			empty++
		default:
			empty = 0
		}
	}
	return m.at.Processed, io.ErrNoProgress
}

// ReadFrom absorbs r to its end, like [Hasher.WriteReader]. With it, [io.Copy] reads long pieces.
func (h *Hasher) ReadFrom(r io.Reader) (int64, error) {
	return h.WriteReader(context.Background(), r, nil)
}

// HashReader reads r to its end and returns its 32-byte hash. See [Hasher.WriteReader].
func HashReader(ctx context.Context, r io.Reader, opts *ReadOptions) (sum [32]byte, err error) {
	h := New()
	if _, err := h.WriteReader(ctx, r, opts); err != nil {
		return sum, err
	}
	return h.Sum256(), nil
}

// HashFile returns the 32-byte hash of the file at path. See [Hasher.WriteFile].
func HashFile(ctx context.Context, path string, opts *ReadOptions) (sum [32]byte, err error) {
	h := New()
	if _, err := h.WriteFile(ctx, path, opts); err != nil {
		return sum, err
	}
	return h.Sum256(), nil
}

// WriteFile absorbs the file at path, and returns its length. Several goroutines read long regular
// files, unless the options forbid it. If such a file becomes shorter meanwhile, the error is
// [io.ErrUnexpectedEOF]. After an error, the hasher has absorbed a part of the file.
func (h *Hasher) WriteFile(ctx context.Context, path string, opts *ReadOptions) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.IsDir() {
		return 0, &os.PathError{Op: "hash", Path: path, Err: errors.New("is a directory")}
	}
	if opts == nil {
		opts = &ReadOptions{}
	}
	workers := opts.Concurrency
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	m := newMeter(opts, info.Size())
	if info.Mode().IsRegular() && workers > 1 && info.Size() >= parallelMin {
		err = h.writeRegular(ctx, f, info.Size(), workers, m)
	} else {
		// A pipe, or a file of /proc, does not know its length: the reader's end is the end.
		plain := ReadOptions{Progress: opts.Progress}
		if info.Mode().IsRegular() && info.Size() > 0 {
			plain.Total = info.Size()
		}
		return h.WriteReader(ctx, f, &plain)
	}
	if err == nil {
		m.finish()
	}
	return m.at.Processed, err
}

// writeRegular absorbs the first size bytes of a file: to the next place where a segment can begin,
// then segments read and hashed at their own places, then the rest.
func (h *Hasher) writeRegular(ctx context.Context, f io.ReaderAt, size int64, workers int, m *meter) error {
	const segment = readLen
	absorbed := int64(h.count())*guts.ChunkLen + int64(h.pending)
	lead := min(size, -absorbed&(segment-1))
	if err := h.writeSection(ctx, f, 0, lead, m); err != nil {
		return err
	}
	// The last byte is left to the rest, as the root needs it.
	n := max(0, (size-lead-1)/segment)
	if n > 0 {
		h.settle()
		if err := h.writeSegments(ctx, f, lead, int(n), workers, m); err != nil {
			return err
		}
	}
	return h.writeSection(ctx, f, lead+n*segment, size-lead-n*segment, m)
}

// settle hashes the pending input, which ends at a place where a segment can begin and is followed
// by more input.
func (h *Hasher) settle() {
	h.stack.MergeLast(&h.key, h.mode)
	h.hashBatches(h.buffer()[:h.pending])
	h.pending = 0
}

// writeSection absorbs n bytes of a file from the given place on.
func (h *Hasher) writeSection(ctx context.Context, f io.ReaderAt, from, n int64, m *meter) error {
	buf := buffers.Get().(*[readLen]byte)
	defer buffers.Put(buf)
	defer clear(buf[:])
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(n, readLen)]
		if err := readAt(f, part, from); err != nil {
			return err
		}
		h.Write(part)
		m.add(len(part))
		from += int64(len(part))
		n -= int64(len(part))
	}
	return nil
}

// readAt fills buf. The end of the file is an error.
func readAt(f io.ReaderAt, buf []byte, from int64) error {
	n, err := f.ReadAt(buf, from)
	if n == len(buf) {
		return nil
	}
	if err == io.EOF || err == nil {
		return fmt.Errorf("blake3: the file became shorter while it was read: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// segmentResult is the chaining value of a segment, or the error.
type segmentResult struct {
	index int
	cv    guts.CV
	err   error
}

// writeSegments absorbs n segments of a file by several goroutines. At most twice as many segments
// as goroutines wait for the one that comes next, so that the memory in use does not depend on the
// length of the file.
func (h *Hasher) writeSegments(ctx context.Context, f io.ReaderAt, from int64, n, workers int, m *meter) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers = min(workers, n)
	window := 2 * workers
	tasks, results := make(chan int, window), make(chan segmentResult, window)
	first, key, mode := h.offset+h.stack.Count, h.key, h.mode
	defer close(tasks)
	for range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			buf := buffers.Get().(*[readLen]byte)
			defer buffers.Put(buf)
			defer clear(buf[:])
			for i := range tasks {
				r := segmentResult{index: i, err: ctx.Err()}
				if r.err == nil {
					r.err = readAt(f, buf[:], from+int64(i)*readLen)
				}
				if r.err == nil {
					r.cv = guts.Subtree(buf[:], &key, first+uint64(i)*guts.BatchChunks, mode)
				}
				results <- r
			}
		}()
	}
	early := make(map[int]guts.CV, window)
	sent := 0
	for next := 0; next < n; {
		for ; sent < n && sent < next+window; sent++ {
			tasks <- sent
		}
		r := <-results
		if r.err != nil {
			return r.err
		}
		m.add(readLen)
		early[r.index] = r.cv
		for cv, ok := early[next]; ok; cv, ok = early[next] {
			delete(early, next)
			h.stack.PushSubtree(cv, guts.BatchChunks, &key, mode)
			next++
		}
	}
	return nil
}

// meter reports progress.
type meter struct {
	report func(Progress)
	at     Progress
	start  time.Time
	last   time.Time
}

// newMeter makes a meter and reports the beginning. total is -1 if only the options may know it.
func newMeter(opts *ReadOptions, total int64) *meter {
	m := &meter{start: time.Now(), at: Progress{Total: total}}
	if opts != nil {
		m.report = opts.Progress
		if total < 0 && opts.Total > 0 {
			m.at.Total = opts.Total
		}
	}
	return m
}

func (m *meter) add(n int) {
	m.at.Processed += int64(n)
	if m.report == nil {
		return
	}
	if now := time.Now(); now.Sub(m.last) >= progressEvery {
		m.last = now
		m.at.Elapsed = now.Sub(m.start)
		m.report(m.at)
	}
}

func (m *meter) finish() {
	if m.report != nil {
		m.at.Elapsed = time.Since(m.start)
		m.report(m.at)
	}
}
