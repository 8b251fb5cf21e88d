package blake3

import (
	"os"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// On an emulated processor, the expected kernel is given. Elsewhere it is the best available kernel.
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
