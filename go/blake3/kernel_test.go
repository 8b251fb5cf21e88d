package blake3

import (
	"os"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// Where a processor is emulated, the kernel that it must choose is given. Elsewhere it is the best of those that there are.
func TestKernelIsTheOneExpected(t *testing.T) {
	want := os.Getenv("BULLA_BLAKE3_EXPECT_KERNEL")
	if want == "" {
		want = os.Getenv("BULLA_BLAKE3_FORCE_KERNEL")
	}
	if want == "" {
		want = guts.Available()[0].String()
	}
	if Kernel() != want {
		t.Errorf("the kernel in use is %s, want %s", Kernel(), want)
	}
}
