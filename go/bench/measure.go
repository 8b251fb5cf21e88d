package main

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
)

// role is the role of an implementation in a case.
type role string

const (
	ours    role = "ours"
	peer    role = "peer"
	control role = "control" // the first peer once more: what it shows beside the peer is noise
)

// contender is one implementation of a case's operation. run does it n times and returns a part of
// the result.
type contender struct {
	name string
	role role
	run  func(in []byte, n int) [32]byte
}

// testCase is an operation that all its contenders do with the same input.
type testCase struct {
	name       string
	bytes      int // read, or for output written, by one operation
	input      int // bytes of input that an operation gets
	threads    int
	target     float64 // the target ratio to the best peer, 0 if there is none
	contenders []contender
}

// result is the result of measuring a case.
type result struct {
	iterations []int
	samples    [][]float64 // nanoseconds of one operation, by contender and round
	ghz        float64
}

const (
	// page is the limit of the inputs' offsets.
	page = 4096
	// longRun is the duration of an operation from which on fewer rounds must be enough.
	longRun    = 5 * time.Millisecond
	longRounds = 15
)

// memory is the memory that inputs are read from.
var memory = func() []byte {
	m := make([]byte, largest+page)
	for i := range m {
		m[i] = byte(i % 251)
	}
	return m
}()

// measure takes a sample of each contender in each round, in a new random order and with a new
// random offset of the input. Before that, all must agree on the result.
func measure(c testCase, s settings) (r result, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.threads))
	in := memory[:c.input:c.input]
	want := c.contenders[0].run(in, 1)
	r.iterations, r.samples = make([]int, len(c.contenders)), make([][]float64, len(c.contenders))
	rounds := s.rounds
	for i, t := range c.contenders {
		if t.run(in, 1) != want {
			return r, fmt.Errorf("%s: %s has another result than %s", c.name, t.name, c.contenders[0].name)
		}
		for r.iterations[i] = 1; timed(t, in, r.iterations[i]) < s.sample; r.iterations[i] *= 2 {
		}
		if timed(t, in, 1) > longRun {
			rounds = min(rounds, longRounds)
		}
	}
	r.ghz = clock()
	for range rounds {
		at := rand.IntN(page)
		in := memory[at : at+c.input : at+c.input]
		for _, i := range rand.Perm(len(c.contenders)) {
			n := r.iterations[i]
			c.contenders[i].run(in, (n+7)/8) // warms the branch predictors
			r.samples[i] = append(r.samples[i], float64(timed(c.contenders[i], in, n).Nanoseconds())/float64(n))
		}
	}
	return r, nil
}

func timed(t contender, in []byte, n int) time.Duration {
	start := time.Now()
	t.run(in, n)
	return time.Since(start)
}

// ratio is the median over the rounds of contender i's time over ours.
func (r result) ratio(c testCase, i int) float64 {
	own := slices.IndexFunc(c.contenders, func(t contender) bool { return t.role == ours })
	ratios := make([]float64, len(r.samples[i]))
	for k := range ratios {
		ratios[k] = r.samples[i][k] / r.samples[own][k]
	}
	return median(ratios)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// addend is a variable, so that the compiler does not know it.
var addend uint64 = 0x9E3779B97F4A7C15

// clock is the frequency of the core in GHz, by chains of dependent additions and rotations of one
// cycle each. The difference between a long and a short chain does not contain the cost of the loop
// around them.
func clock() float64 {
	const turns, more = 20000, 16
	short, long := time.Hour, time.Hour
	x, y := uint64(1), addend
	for range 20 {
		start := time.Now()
		for range turns {
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
		}
		short = min(short, time.Since(start))
		start = time.Now()
		for range turns {
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
			x += y
			x = bits.RotateLeft64(x, 7)
		}
		long = min(long, time.Since(start))
	}
	runtime.KeepAlive(x)
	return turns * more / float64(max(1, long-short))
}
