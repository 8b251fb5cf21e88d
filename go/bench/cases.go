package main

import (
	"fmt"

	"github.com/bulla-dev/bulla/go/blake3"
	zeebo "github.com/zeebo/blake3"
	luke "lukechampine.com/blake3"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Sink keeps results alive.
var Sink [32]byte

func cases() []testCase {
	input := make([]byte, 64*mib)
	for i := range input {
		input[i] = byte(i % 251)
	}
	var all []testCase
	for _, n := range []int{0, 11, 64, 128, 256, 512, 1 * kib, 2 * kib, 3 * kib, 4 * kib, 5 * kib, 6 * kib, 7 * kib, 8 * kib,
		9 * kib, 10 * kib, 11 * kib, 12 * kib, 13 * kib, 14 * kib, 15 * kib, 15*kib + 500, 16 * kib, 17 * kib, 24 * kib,
		64 * kib, 256 * kib, 1 * mib, 16 * mib, 64 * mib} {
		all = append(all, oneShot("", input[:n], 1, oneShotTarget(n)))
	}
	all = append(all, keyed(input[:kib]))
	all = append(all, stream(input[:mib], 64, 1.3), stream(input[:mib], kib, 0), stream(input[:mib], 32*kib, 1.9))
	all = append(all, output(mib))
	all = append(all, many(input, 64), many(input, kib))
	for _, n := range []int{mib, 4 * mib, 16 * mib, 64 * mib} {
		all = append(all, oneShot("two threads, ", input[:n], 2, 1.5))
	}
	return all
}

// oneShotTarget is the ratio to hold for one input of n bytes on one thread.
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

// name writes a length in bytes, KiB or MiB.
func name(n int) string {
	switch {
	case n >= mib && n%mib == 0:
		return fmt.Sprintf("%d MiB", n/mib)
	case n >= kib && n%kib == 0:
		return fmt.Sprintf("%d KiB", n/kib)
	}
	return fmt.Sprintf("%d B", n)
}

func oneShot(prefix string, in []byte, threads int, target float64) testCase {
	return testCase{prefix + name(len(in)), len(in), threads, target, []contender{
		{ours, func() { Sink = blake3.Sum256(in) }},
		{"zeebo", func() { Sink = zeebo.Sum256(in) }},
		{"lukechampine", func() { Sink = luke.Sum256(in) }},
	}}
}

func keyed(in []byte) testCase {
	key := make([]byte, 32)
	out := make([]byte, 0, 32)
	return testCase{"new keyed hasher, 1 KiB", len(in), 1, 1.4, []contender{
		{ours, func() {
			h, err := blake3.NewKeyed(key)
			if err != nil {
				panic(err)
			}
			h.Write(in)
			h.Sum(out)
		}},
		{"zeebo", func() {
			h, err := zeebo.NewKeyed(key)
			if err != nil {
				panic(err)
			}
			h.Write(in)
			h.Sum(out)
		}},
		{"lukechampine", func() {
			h := luke.New(32, key)
			h.Write(in)
			h.Sum(out)
		}},
	}}
}

// writer is what the hashers have in common.
type writer interface {
	Reset()
	Write([]byte) (int, error)
	Sum([]byte) []byte
}

func stream(in []byte, step int, target float64) testCase {
	out := make([]byte, 0, 32)
	in = in[:len(in):len(in)]
	run := func(h writer) func() {
		return func() {
			h.Reset()
			for at := 0; at < len(in); at += step {
				h.Write(in[at:min(at+step, len(in))])
			}
			h.Sum(out)
		}
	}
	return testCase{fmt.Sprintf("stream in writes of %s", name(step)), len(in), 1, target, []contender{
		{ours, run(blake3.New())}, {"zeebo", run(zeebo.New())}, {"lukechampine", run(luke.New(32, nil))},
	}}
}

func output(n int) testCase {
	out := make([]byte, n)
	ourHasher, zeeboHasher, lukeHasher := blake3.New(), zeebo.New(), luke.New(32, nil)
	return testCase{"output of " + name(n), n, 1, 2, []contender{
		{ours, func() { ourHasher.Digest().Read(out) }},
		{"zeebo", func() { zeeboHasher.Digest().Read(out) }},
		{"lukechampine", func() { lukeHasher.XOF().Read(out) }},
	}}
}

// many measures 64 inputs at once against one call for each, of this package as well.
func many(in []byte, n int) testCase {
	const count = 64
	inputs := make([][]byte, count)
	for i := range inputs {
		inputs[i] = in[i*n : (i+1)*n]
	}
	out := make([][32]byte, count)
	oneEach := func(sum func([]byte) [32]byte) func() {
		return func() {
			for i, in := range inputs {
				out[i] = sum(in)
			}
		}
	}
	return testCase{fmt.Sprintf("%d inputs of %s", count, name(n)), count * n, 1, 4, []contender{
		{ours, func() { blake3.SumMany(inputs, out) }},
		{"bulla, one call each", oneEach(blake3.Sum256)},
		{"zeebo", oneEach(zeebo.Sum256)},
		{"lukechampine", oneEach(luke.Sum256)},
	}}
}
