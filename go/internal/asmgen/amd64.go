package main

import (
	"github.com/mmcloughlin/avo/build"
)

// avx512 is every kernel for AVX-512 F, BW and VL.
func avx512(c *build.Context) {
	m := newMachine(c, avx512VL)
	m.rowOne()
	m.rowStep(2)
	m.rowStep(4)
	m.columnStep(8)
	m.columnStep(16)
	m.columnRoot(16)
}

// avx2Kernels is every kernel for AVX2.
func avx2Kernels(c *build.Context) {
	m := newMachine(c, avx2)
	m.rowOne()
	m.rowStep(2)
	m.rowStep(4)
	m.columnStep(8)
	m.columnRoot(8)
}

// sse41Kernels is the kernel for SSE4.1.
func sse41Kernels(c *build.Context) {
	newMachine(c, sse41).rowOne()
}
