package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bulla-dev/bulla/go/blake3"
	"golang.org/x/sys/cpu"
)

// record is a line of spec/bench-record.md, version 2.
type record struct {
	Schema         int       `json:"schema"`
	Run            string    `json:"run"`
	Time           string    `json:"time"`
	Suite          string    `json:"suite"`
	Case           string    `json:"case"`
	Bytes          int       `json:"bytes"`
	Implementation string    `json:"implementation"`
	Version        string    `json:"version"`
	Role           role      `json:"role"`
	Kernel         string    `json:"kernel"`
	Forced         bool      `json:"forced"`
	HeldTo         string    `json:"held_to"`
	Lane           string    `json:"lane"`
	CPU            string    `json:"cpu"`
	Features       []string  `json:"features"`
	GHz            float64   `json:"ghz"`
	Toolchain      string    `json:"toolchain"`
	Flags          string    `json:"flags"`
	Commit         string    `json:"commit"`
	Dirty          bool      `json:"dirty"`
	Launch         int       `json:"launch"`
	Iterations     int       `json:"iterations"`
	Samples        []float64 `json:"samples_ns"`
	Load           float64   `json:"load"`
	Threads        int       `json:"threads"`
}

func printRecords(w io.Writer, c testCase, r result, s settings) error {
	lines := json.NewEncoder(w)
	for i, t := range c.contenders {
		line := record{
			Schema: 2, Time: time.Now().UTC().Format(time.RFC3339), Suite: "go", Case: c.name, Bytes: c.bytes,
			Implementation: t.name, Version: version(t.name), Role: t.role,
			CPU: processor(), Features: features(), GHz: r.ghz, Toolchain: runtime.Version(), Launch: s.launch,
			Iterations: r.iterations[i], Samples: r.samples[i], Load: load(), Threads: c.threads,
		}
		if t.role == ours {
			line.Kernel = blake3.Kernel()
			line.Forced = os.Getenv("BULLA_BLAKE3_FORCE_KERNEL") != ""
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// version is the version of an implementation's module.
func version(name string) string {
	if strings.HasPrefix(name, bulla) {
		return "0.1.0"
	}
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == name {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return ""
}

// processor is the processor's own name.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func features() []string {
	x, all := cpu.X86, []string{}
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"sse4.1", x.HasSSE41}, {"bmi2", x.HasBMI2}, {"avx2", x.HasAVX2}, {"avx512f", x.HasAVX512F},
		{"avx512bw", x.HasAVX512BW}, {"avx512vl", x.HasAVX512VL}, {"asimd", cpu.ARM64.HasASIMD},
	} {
		if f.has {
			all = append(all, f.name)
		}
	}
	return all
}

// load is the average number of running processes over the last minute, or 0 if it is unknown.
func load() (average float64) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Sscan(string(text), &average)
	}
	return average
}

func heading() {
	fmt.Printf("kernel %s, %s, %s\n", blake3.Kernel(), runtime.Version(), processor())
	fmt.Printf("%-18s %12s %10s %9s %8s %8s  %s\n", "case", "ours ns", "ours MB/s", "best/ours", "control", "target", "best peer")
}

// row is the line of a case: the ratio of the best peer to ours, and the ratio of the control to
// the first peer.
func row(c testCase, r result) {
	best, first, again := 0.0, 0.0, 0.0
	var name string
	var own float64
	for i, t := range c.contenders {
		ratio := r.ratio(c, i)
		switch t.role {
		case ours:
			own = median(r.samples[i])
		case control:
			again = ratio
		case peer:
			if first == 0 {
				first = ratio
			}
			if best == 0 || ratio < best {
				best, name = ratio, t.name
			}
		}
	}
	mark := ""
	if best < c.target {
		mark = ", below the target"
	}
	fmt.Printf("%-18s %12.1f %10.0f %9.3f %8.3f %8.2f  %s%s\n", c.name, own, float64(c.bytes)*1e3/own, best, again/first,
		c.target, name, mark)
}
