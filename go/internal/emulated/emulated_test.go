//go:build emulated

// Package emulated runs the tests of the kernels on other processors than this machine's, with
// qemu-user (Debian package qemu-user): go test -tags emulated ./internal/emulated
package emulated

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run is a package and its tests to run.
type run struct{ path, tests string }

// whole is every length on every kernel of the processor. detection is for kernels that x86-64
// machines test natively: it checks that an older processor chooses a kernel that it supports.
var (
	whole = []run{
		{"internal/guts", "."},
		{"blake3", "Vectors|EveryLength|Output|Kernel|SumManyMixed|ReadsNothing"},
		{"bao", "Vectors"},
	}
	detection = []run{{"blake3", "Kernel|StateVectors"}}
)

// processors are the emulated processors, with the kernel that each must choose.
var processors = []struct {
	name, arch, qemu, cpu, kernel string
	runs                          []run
}{
	{"aarch64", "arm64", "qemu-aarch64", "max", "aarch64/neon", whole},
	{"big-endian s390x", "s390x", "qemu-s390x", "max", "portable", whole},
	{"x86-64 with AVX2", "amd64", "qemu-x86_64", "Haswell", "x86_64/avx2", detection},
	{"x86-64 with SSE4.1", "amd64", "qemu-x86_64", "Nehalem", "x86_64/sse4.1", detection},
	{"x86-64 without either", "amd64", "qemu-x86_64", "qemu64", "portable", detection},
}

func TestProcessors(t *testing.T) {
	// Tests run in the folder of their package.
	module, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processors {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			qemu, err := exec.LookPath(p.qemu)
			if err != nil {
				t.Fatalf("%v: install the Debian package qemu-user", err)
			}
			for _, pkg := range p.runs {
				binary := filepath.Join(t.TempDir(), "test")
				build := exec.Command("go", "test", "-c", "-o", binary, "./"+pkg.path)
				build.Dir = module
				build.Env = append(os.Environ(), "GOARCH="+p.arch, "CGO_ENABLED=0")
				if out, err := build.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", pkg.path, err, out)
				}
				test := exec.Command(qemu, "-cpu", p.cpu, binary, "-test.v", "-test.run", pkg.tests)
				test.Dir = filepath.Join(module, pkg.path)
				test.Env = append(os.Environ(), "BULLA_BLAKE3_EXPECT_KERNEL="+p.kernel)
				out, err := test.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", pkg.path, err, failures(out))
				}
				if pkg.path != "bao" && !strings.Contains(string(out), p.kernel) {
					t.Errorf("%s: the kernel %s did not run", pkg.path, p.kernel)
				}
			}
		})
	}
}

// failures returns the relevant lines of a verbose test's output.
func failures(out []byte) []byte {
	var kept [][]byte
	for _, line := range bytes.Split(out, []byte("\n")) {
		if s := string(bytes.TrimSpace(line)); !strings.HasPrefix(s, "=== ") && !strings.HasPrefix(s, "--- PASS") {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept[:min(len(kept), 60)], []byte("\n"))
}
