// Bench measures package blake3 against the other BLAKE3 packages for Go: each case interleaved in one process, by
// medians. It writes a table to standard output and, with -json, one line of JSON for each case.
//
//	go run . [-rounds 31] [-sample 1ms] [-cases REGEXP] [-json FILE]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/bulla-dev/bulla/go/blake3"
)

// ours is the name of the package under test; peers are all others.
const ours = "bulla"

// contender is one way to do what a case asks for.
type contender struct {
	name string
	run  func()
}

// testCase is one row of the table.
type testCase struct {
	name       string
	bytes      int // hashed or written by one run
	threads    int
	target     float64 // the ratio to hold, 0 if there is none
	contenders []contender
}

// result is what a case measured: nanoseconds of one run by name, and the best peer's time over ours.
type result struct {
	Case    string             `json:"case"`
	Bytes   int                `json:"bytes"`
	Threads int                `json:"threads"`
	Kernel  string             `json:"kernel"`
	Ns      map[string]float64 `json:"ns"`       // medians
	Least   map[string]float64 `json:"least_ns"` // the least disturbed sample
	Peer    string             `json:"best_peer"`
	Ratio   float64            `json:"ratio"`
	Target  float64            `json:"target,omitempty"`
	Go      string             `json:"go"`
	Arch    string             `json:"arch"`
}

func main() {
	rounds := flag.Int("rounds", 31, "samples of each contender")
	sample := flag.Duration("sample", time.Millisecond, "least duration of a sample")
	only := flag.String("cases", "", "measure only the cases whose names match this regular expression")
	path := flag.String("json", "", "append one line of JSON for each case to this file")
	flag.Parse()
	if err := run(*rounds, *sample, *only, *path); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rounds int, sample time.Duration, only, path string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	lines := io.Discard
	if path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		lines = f
	}
	fmt.Printf("kernel %s, %s, %s/%s\n", blake3.Kernel(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Printf("%-28s %12s %12s %12s %8s %8s  %s\n", "case", "ours ns", "ours MB/s", "peer MB/s", "ratio", "target", "best peer")
	for _, c := range cases() {
		if !match.MatchString(c.name) {
			continue
		}
		r := measure(c, rounds, sample)
		mark := ""
		if c.target > 0 && r.Ratio < c.target {
			mark = " (below)"
		}
		fmt.Printf("%-28s %12.1f %12.0f %12.0f %8.2f %8.2f  %s%s\n", c.name, r.Ns[ours], rate(c.bytes, r.Ns[ours]),
			rate(c.bytes, r.Ns[r.Peer]), r.Ratio, c.target, r.Peer, mark)
		if err := json.NewEncoder(lines).Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// rate is in megabytes a second.
func rate(bytes int, ns float64) float64 { return float64(bytes) * 1e3 / ns }

// measure runs the contenders in turn, each for at least one sample's time, as many rounds as asked for.
func measure(c testCase, rounds int, sample time.Duration) result {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.threads))
	runs := make([]int, len(c.contenders))
	times := make([][]float64, len(c.contenders))
	for i, t := range c.contenders {
		t.run()
		for runs[i] = 1; timed(t.run, runs[i]) < sample; runs[i] *= 2 {
		}
	}
	for round := range rounds {
		for k := range c.contenders {
			i := (k + round) % len(c.contenders)
			d := timed(c.contenders[i].run, runs[i])
			times[i] = append(times[i], float64(d.Nanoseconds())/float64(runs[i]))
		}
	}
	r := result{Case: c.name, Bytes: c.bytes, Threads: c.threads, Kernel: blake3.Kernel(), Target: c.target,
		Ns: map[string]float64{}, Least: map[string]float64{}, Go: runtime.Version(), Arch: runtime.GOARCH}
	for i, t := range c.contenders {
		slices.Sort(times[i])
		r.Ns[t.name], r.Least[t.name] = times[i][len(times[i])/2], times[i][0]
		if t.name != ours && (r.Peer == "" || r.Ns[t.name] < r.Ns[r.Peer]) {
			r.Peer = t.name
		}
	}
	r.Ratio = r.Ns[r.Peer] / r.Ns[ours]
	return r
}

func timed(run func(), n int) time.Duration {
	start := time.Now()
	for range n {
		run()
	}
	return time.Since(start)
}
