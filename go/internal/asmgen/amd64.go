package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// avx512 is every kernel for AVX-512 F, BW and VL.
func avx512(c *build.Context) {
	m := newMachine(c, avx512VL)
	for _, how := range []turning{byRotation, byShifts} {
		m.rowOne(how)
		m.rowStep(2, how)
		m.rowParents(2, how)
	}
	m.scalarOne()
	m.rowStep(4, byRotation)
	m.rowParents(4, byRotation)
	m.columnStep(8)
	m.columnStep(16)
	m.wovenStep(16)
	m.columnTree(16)
	m.columnRoot(16)
	m.cpuid()
}

// cpuid emits a function for the instruction CPUID.
func (m *machine) cpuid() {
	m.Function("cpuid")
	m.Attributes(attr.NOSPLIT)
	m.SignatureExpr("func(leaf uint32) (a, b, c, d uint32)")
	m.Doc("cpuid asks the processor what it is.")
	m.Load(m.Param("leaf"), reg.EAX)
	m.XORL(reg.ECX, reg.ECX)
	m.CPUID()
	for i, r := range []reg.Register{reg.EAX, reg.EBX, reg.ECX, reg.EDX} {
		m.Store(r, m.ReturnIndex(i))
	}
	m.RET()
}

// avx2Kernels is every kernel for AVX2.
func avx2Kernels(c *build.Context) {
	m := newMachine(c, avx2)
	m.rowOne(byRotation)
	m.rowStep(2, byRotation)
	m.rowStep(4, byRotation)
	m.rowParents(2, byRotation)
	m.rowParents(4, byRotation)
	m.columnStep(8)
	m.columnTree(8)
	m.columnRoot(8)
}

// sse41Kernels is every kernel for SSE4.1.
func sse41Kernels(c *build.Context) {
	m := newMachine(c, sse41)
	m.rowOne(byRotation)
	m.columnStep(4)
	m.columnTree(4)
	m.columnRoot(4)
}
