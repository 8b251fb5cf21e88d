package blake3

import (
	"os"
	"testing"
)

// Where a processor is emulated, the kernel that it must choose is given.
func TestKernelIsTheOneExpected(t *testing.T) {
	want := os.Getenv("BULLA_BLAKE3_EXPECT_KERNEL")
	if want == "" {
		want = os.Getenv("BULLA_BLAKE3_FORCE_KERNEL")
	}
	if want != "" && Kernel() != want {
		t.Errorf("the kernel in use is %s, want %s", Kernel(), want)
	}
}
