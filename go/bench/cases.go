package main

import (
	"fmt"
	"runtime"

	"github.com/bulla-dev/bulla/go/blake3"
	zeebo "github.com/zeebo/blake3"
	luke "lukechampine.com/blake3"
)

const (
	kib     = 1 << 10
	mib     = 1 << 20
	largest = 64 * mib
	// The implementations by the names of their modules.
	bulla     = "bulla go"
	zeeboName = "github.com/zeebo/blake3"
	lukeName  = "lukechampine.com/blake3"
)

// cases are those of the table, on one thread first.
func cases() []testCase {
	var all []testCase
	for _, n := range []int{0, 11, 64, 128, 256, 512, 1 * kib, 2 * kib, 3 * kib, 4 * kib, 5 * kib, 6 * kib, 7 * kib, 8 * kib,
		9 * kib, 10 * kib, 11 * kib, 12 * kib, 13 * kib, 14 * kib, 15 * kib, 16 * kib, 17 * kib, 24 * kib,
		64 * kib, 256 * kib, 1 * mib, 16 * mib, 64 * mib} {
		all = append(all, oneShot("sum", n, 1, oneShotTarget(n)))
	}
	all = append(all, keyed(kib))
	all = append(all, stream(mib, 64, 1.3), stream(mib, kib, 0), stream(mib, 32*kib, 1.9))
	all = append(all, output(mib), many(64), many(kib))
	for _, n := range []int{mib, 4 * mib, 16 * mib, 64 * mib} {
		all = append(all, oneShot("threads2", n, 2, 1.5))
	}
	for _, threads := range []int{4, 8, 16} {
		if threads > runtime.NumCPU() {
			break
		}
		for _, n := range []int{128 * kib, 512 * kib, mib, 2 * mib, 4 * mib, 16 * mib} {
			all = append(all, oneShot(fmt.Sprintf("threads%d", threads), n, threads, threadsTarget(n)))
		}
	}
	for i := range all {
		all[i].contenders = withControl(all[i].contenders)
	}
	return all
}

// withControl adds a second instance of the first peer.
func withControl(all []contender) []contender {
	for _, t := range all {
		if t.role == peer {
			return append(all, contender{t.name, control, t.run})
		}
	}
	return all
}

// threadsTarget is the target ratio for one input of n bytes on four threads or more.
func threadsTarget(n int) float64 {
	if n >= 512*kib && n <= 4*mib {
		return 2.5
	}
	return 1.5
}

// oneShotTarget is the target ratio for one input of n bytes on one thread.
func oneShotTarget(n int) float64 {
	switch {
	case n <= 64:
		return 1.3
	case n <= kib:
		return 1.25
	case n <= 2*kib:
		return 2.4
	case n <= 4*kib:
		return 2.5
	case n <= 8*kib:
		return 1.6
	case n < 16*kib:
		return 1.9
	}
	return 2.0
}

// oneShot is one call for n bytes. The loops are written out, so that calls are as direct as in a
// user's program.
func oneShot(group string, n, threads int, target float64) testCase {
	return testCase{fmt.Sprintf("%s/%d", group, n), n, n, threads, target, []contender{
		{bulla, ours, func(in []byte, n int) (sum [32]byte) {
			for range n {
				sum = blake3.Sum256(in)
			}
			return sum
		}},
		{zeeboName, peer, func(in []byte, n int) (sum [32]byte) {
			for range n {
				sum = zeebo.Sum256(in)
			}
			return sum
		}},
		{lukeName, peer, func(in []byte, n int) (sum [32]byte) {
			for range n {
				sum = luke.Sum256(in)
			}
			return sum
		}},
	}}
}

// repeat does an operation n times.
func repeat(do func(in []byte) [32]byte) func([]byte, int) [32]byte {
	return func(in []byte, n int) (sum [32]byte) {
		for range n {
			sum = do(in)
		}
		return sum
	}
}

// keyed is a new keyed hasher for n bytes.
func keyed(n int) testCase {
	key := make([]byte, 32)
	out := make([]byte, 0, 32)
	finish := func(h writer, in []byte) [32]byte {
		h.Write(in)
		return [32]byte(h.Sum(out))
	}
	return testCase{fmt.Sprintf("new-keyed/%d", n), n, n, 1, 1.4, []contender{
		{bulla, ours, repeat(func(in []byte) [32]byte {
			h, err := blake3.NewKeyed(key)
			if err != nil {
				panic(err)
			}
			h.Write(in)
			return [32]byte(h.Sum(out))
		})},
		{zeeboName, peer, repeat(func(in []byte) [32]byte {
			h, err := zeebo.NewKeyed(key)
			if err != nil {
				panic(err)
			}
			h.Write(in)
			return [32]byte(h.Sum(out))
		})},
		{lukeName, peer, repeat(func(in []byte) [32]byte { return finish(luke.New(32, key), in) })},
	}}
}

// writer is the common interface of the hashers.
type writer interface {
	Reset()
	Write([]byte) (int, error)
	Sum([]byte) []byte
}

// stream is n bytes in writes of step bytes, to a hasher that is reused.
func stream(n, step int, target float64) testCase {
	out := make([]byte, 0, 32)
	by := func(h writer) func([]byte, int) [32]byte {
		return repeat(func(in []byte) [32]byte {
			h.Reset()
			for at := 0; at < len(in); at += step {
				h.Write(in[at:min(at+step, len(in))])
			}
			return [32]byte(h.Sum(out))
		})
	}
	return testCase{fmt.Sprintf("stream-%d/%d", step, n), n, n, 1, target, []contender{
		{bulla, ours, by(blake3.New())}, {zeeboName, peer, by(zeebo.New())}, {lukeName, peer, by(luke.New(32, nil))},
	}}
}

// output is n bytes of extendable output. All contenders write to the same memory.
func output(n int) testCase {
	out := make([]byte, n)
	last := func() [32]byte { return [32]byte(out[n-32:]) }
	ourHasher, zeeboHasher, lukeHasher := blake3.New(), zeebo.New(), luke.New(32, nil)
	return testCase{fmt.Sprintf("output/%d", n), n, 0, 1, 2, []contender{
		{bulla, ours, repeat(func([]byte) [32]byte { ourHasher.Digest().Read(out); return last() })},
		{zeeboName, peer, repeat(func([]byte) [32]byte { zeeboHasher.Digest().Read(out); return last() })},
		{lukeName, peer, repeat(func([]byte) [32]byte { lukeHasher.XOF().Read(out); return last() })},
	}}
}

// many is 64 inputs of n bytes at once, against one call for each, of this package as well.
func many(n int) testCase {
	const count = 64
	inputs := make([][]byte, count)
	out := make([][32]byte, count)
	cut := func(in []byte) {
		for i := range inputs {
			inputs[i] = in[i*n : (i+1)*n]
		}
	}
	oneEach := func(sum func([]byte) [32]byte) func([]byte, int) [32]byte {
		return repeat(func(in []byte) [32]byte {
			cut(in)
			for i, in := range inputs {
				out[i] = sum(in)
			}
			return out[count-1]
		})
	}
	return testCase{fmt.Sprintf("many-%d/%d", count, count*n), count * n, count * n, 1, 4, []contender{
		{bulla, ours, repeat(func(in []byte) [32]byte { cut(in); blake3.SumMany(inputs, out); return out[count-1] })},
		{bulla + ", one call each", peer, oneEach(blake3.Sum256)},
		{zeeboName, peer, oneEach(zeebo.Sum256)},
		{lukeName, peer, oneEach(luke.Sum256)},
	}}
}
