package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set of amd64.
type isa int

const (
	sse41 isa = iota
	avx2
	avx512VL
)

// suffix ends the names of the functions of an instruction set.
func (i isa) suffix() string { return [...]string{"SSE41", "AVX2", "AVX512"}[i] }

// machine emits the operations that the kernels are made of, for one instruction set.
type machine struct {
	*build.Context
	isa
	iv, blockLen, counting, rot16, rot8 operand.Mem
	constants                           map[string]operand.Mem
	labels                              int
}

// vec is a vector register by number, at the width given in bytes.
type vec struct{ n, width int }

func (v vec) op() reg.VecPhysical {
	r := registers[v.n]
	switch v.width {
	case 16:
		return r.AsX().(reg.VecPhysical)
	case 32:
		return r.AsY().(reg.VecPhysical)
	}
	return r
}

// at is the same register at another width.
func (v vec) at(width int) vec { return vec{v.n, width} }

var registers = [32]reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

func newMachine(c *build.Context, i isa) *machine {
	m := &machine{Context: c, isa: i, constants: map[string]operand.Mem{}}
	m.iv = m.data("iv", iv[:])
	m.blockLen = m.data("blockLen", []uint32{64})
	if i == avx512VL {
		m.counting = m.data("counting", []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
		return m
	}
	m.counting = m.data("counting", []uint32{0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0}) // as words of 64 bits
	m.rot16 = m.data("rot16", byteRotation(2))
	m.rot8 = m.data("rot8", byteRotation(1))
	return m
}

// byteRotation is the byte shuffle that turns eight words right by n bytes.
func byteRotation(n uint32) []uint32 {
	var words []uint32
	for i := range uint32(8) {
		var w uint32
		for b := range uint32(4) {
			w |= (4*(i%4) + (b+n)%4) << (8 * b)
		}
		words = append(words, w)
	}
	return words
}

// data is a constant in memory.
func (m *machine) data(name string, words []uint32) operand.Mem {
	if mem, ok := m.constants[name]; ok {
		return mem
	}
	mem := m.StaticGlobal(name + m.suffix())
	m.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, w := range words {
		m.AddDatum(4*i, operand.U32(w))
	}
	m.constants[name] = mem
	return mem
}

// begin opens a function of assembly.
func (m *machine) begin(name, signature, doc string) {
	m.Function(name + m.suffix())
	// The kernels for sixteen registers have frames that are too large for a function that may not
	// grow the stack.
	if m.isa == avx512VL {
		m.Attributes(attr.NOSPLIT)
	}
	m.SignatureExpr(signature)
	m.Doc(name + m.suffix() + " " + doc)
	m.labels = 0
}

// param loads a parameter into a general register.
func (m *machine) param(name string) reg.GPVirtual {
	return m.Load(m.Param(name), m.GP64()).(reg.GPVirtual)
}

func (m *machine) param32(name string) reg.GPVirtual {
	return m.Load(m.Param(name), m.GP32()).(reg.GPVirtual)
}

// label makes a new name of a place.
func (m *machine) label(what string) operand.LabelRef {
	m.labels++
	return operand.LabelRef(fmt.Sprintf("%s%d", what, m.labels))
}

func at(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

// add sets dst to a + b. b may be memory if the instruction set has three operands.
func (m *machine) add(dst, a vec, b operand.Op) {
	if m.isa == sse41 {
		m.PADDD(b, dst.op())
		return
	}
	m.VPADDD(b, a.op(), dst.op())
}

// xor sets dst to dst ^ b.
func (m *machine) xor(dst vec, b operand.Op) {
	switch m.isa {
	case sse41:
		m.PXOR(b, dst.op())
	case avx2:
		m.VPXOR(b, dst.op(), dst.op())
	default:
		m.VPXORD(b, dst.op(), dst.op())
	}
}

// ror is the code that turns the words of r right by n bits; the instruction sets without a
// rotation need a free register.
func (m *machine) ror(r vec, n int, free vec) code {
	v, t := r.op(), free.op()
	left, right := operand.U8(32-n), operand.U8(n)
	shuffle := map[int]operand.Mem{16: m.rot16, 8: m.rot8}
	bytes, ok := shuffle[n]
	switch {
	case m.isa == avx512VL:
		return code{func() { m.VPRORD(right, v, v) }}
	case ok && m.isa == avx2:
		return code{func() { m.VPSHUFB(bytes, v, v) }}
	case ok:
		return code{func() { m.PSHUFB(bytes, v) }}
	case m.isa == avx2:
		return code{func() { m.VPSRLD(right, v, t) }, func() { m.VPSLLD(left, v, v) }, func() { m.VPOR(t, v, v) }}
	}
	return code{func() { m.MOVO(v, t) }, func() { m.PSRLL(right, t) }, func() { m.PSLLL(left, v) }, func() { m.POR(t, v) }}
}

// beginFlags is the flags of the first of some blocks. Straight-line code chooses flags, because a
// branch for each block would cost more than the whole choice.
func (m *machine) beginFlags(blocks reg.Register) reg.GPVirtual {
	flags, last := m.param32("all"), m.param32("last")
	m.ORL(m.param32("first"), flags)
	m.ORL(flags, last)
	m.CMPQ(blocks, operand.U8(1))
	m.CMOVLEQ(last, flags)
	return flags
}

// nextFlags sets the flags of the block after this one.
func (m *machine) nextFlags(flags reg.GPVirtual, blocks reg.Register) {
	m.Load(m.Param("all"), flags)
	last := m.param32("last")
	m.ORL(flags, last)
	m.CMPQ(blocks, operand.U8(2))
	m.CMOVLEQ(last, flags)
}
