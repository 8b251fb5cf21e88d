// Bench compares package blake3 with the other BLAKE3 packages for Go, interleaved in one process.
// It prints a table. With -records it prints the records of spec/bench-record.md, one per line;
// `cargo xtask bench go` launches it five times in this way. It works only in a checkout: its
// go.mod replaces the library's module with the folder above.
//
//	go run . [-records] [-rounds 51] [-sample 200us] [-cases PREFIX,...] [-sizes BYTES,...]
//
// If a flag is not given, the variable BULLA_BENCH_LAUNCH, BULLA_BENCH_CASES or BULLA_BENCH_SIZES
// replaces it.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// settings are the options of the command line.
type settings struct {
	rounds  int
	sample  time.Duration
	cases   []string // beginnings of names
	sizes   []string // in bytes
	launch  int
	records bool
}

func main() {
	var s settings
	flag.BoolVar(&s.records, "records", false, "print records, one JSON object a line, instead of the table")
	flag.IntVar(&s.rounds, "rounds", 51, "samples of each implementation")
	flag.DurationVar(&s.sample, "sample", 200*time.Microsecond, "least duration of a sample")
	cases := flag.String("cases", os.Getenv("BULLA_BENCH_CASES"), "only cases whose names begin so, separated by commas")
	sizes := flag.String("sizes", os.Getenv("BULLA_BENCH_SIZES"), "only cases of so many bytes, separated by commas")
	flag.Parse()
	s.cases, s.sizes = list(*cases), list(*sizes)
	s.launch, _ = strconv.Atoi(cmp.Or(os.Getenv("BULLA_BENCH_LAUNCH"), "1"))
	if flag.NArg() > 0 || s.rounds < 1 || s.launch < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

func run(s settings) error {
	measured := 0
	if !s.records {
		heading()
	}
	for _, c := range cases() {
		if !s.takes(c) {
			continue
		}
		measured++
		r, err := measure(c, s)
		if err != nil {
			return err
		}
		if !s.records {
			row(c, r)
		} else if err := printRecords(os.Stdout, c, r, s); err != nil {
			return err
		}
	}
	if measured == 0 {
		return fmt.Errorf("there is no such case")
	}
	return nil
}

// takes reports whether the user asked for the case.
func (s settings) takes(c testCase) bool {
	begins := func(prefix string) bool {
		return strings.HasPrefix(c.name, prefix) || strings.HasPrefix("go/"+c.name, prefix)
	}
	return (len(s.cases) == 0 || slices.ContainsFunc(s.cases, begins)) &&
		(len(s.sizes) == 0 || slices.Contains(s.sizes, strconv.Itoa(c.bytes)))
}
