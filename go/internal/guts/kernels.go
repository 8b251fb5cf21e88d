package guts

import (
	"fmt"
	"os"
	"strings"
)

// Kernel is one implementation of the compression function and of the functions over many inputs.
type Kernel uint8

// The kernels of this package on all machines. Available lists those of this one.
const (
	Portable Kernel = iota
	SSE41
	AVX2
	AVX512
	NEON
)

// ForceVariable is the environment variable that names the kernel to use.
const ForceVariable = "BULLA_BLAKE3_FORCE_KERNEL"

func (k Kernel) String() string {
	return [...]string{"portable", "x86_64/sse4.1", "x86_64/avx2", "x86_64/avx512", "aarch64/neon"}[k]
}

// active is the kernel in use. It is written once, before main; only tests of this module change it
// after that.
var active = initial(os.Getenv(ForceVariable))

// Active is the kernel in use.
func Active() Kernel { return active }

// Force selects kernel k and returns a function that undoes it. It is for tests and benchmarks, and
// must not run concurrently with any hashing. It panics if the machine lacks the kernel.
func Force(k Kernel) (restore func()) {
	before := active
	active = initial(k.String())
	return func() { active = before }
}

// initial is the best kernel of this machine, or the one with the given name.
func initial(name string) Kernel {
	all := Available()
	if name == "" {
		return all[0]
	}
	names := make([]string, len(all))
	for i, k := range all {
		if k.String() == name {
			return k
		}
		names[i] = k.String()
	}
	panic(fmt.Sprintf("blake3: %s=%s: no such kernel on this machine; it has %s",
		ForceVariable, name, strings.Join(names, ", ")))
}
