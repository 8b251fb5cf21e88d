package blake3

import (
	"os"
	"testing"

	"github.com/bulla-dev/bulla/go/internal/guts"
)

// expectVariable is the environment variable that names the kernel to expect on an emulated
// processor.
const expectVariable = "BULLA_BLAKE3_EXPECT_KERNEL"

// On an emulated processor, the expected kernel is given. Elsewhere it is the best available
// kernel.
func TestKernelIsTheOneExpected(t *testing.T) {
	want := os.Getenv(expectVariable)
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
