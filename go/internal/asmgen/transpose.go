package main

import "github.com/mmcloughlin/avo/operand"

// Transposes: between lanes in memory and registers that hold one word of all lanes.

// loadTransposed reads 4*len(out) bytes of each lane, so that out[i] holds word i of all lanes.
// from gives the address of a lane. Lane 4i+j goes to part i of register j of a quad, and a
// transpose within each part then brings lanes in order.
func (m *machine) loadTransposed(out, free []vec, lanes int, from func(lane int) operand.Mem) {
	for j := range 4 {
		parts := make([]operand.Mem, lanes/4)
		for i := range parts {
			parts[i] = from(4*i + j)
		}
		for q := range len(out) / 4 {
			m.loadParts(out[4*q+j], func(i int) operand.Mem { return parts[i].Offset(16 * q) })
		}
	}
	for q := range len(out) / 4 {
		m.transposeQuad(out[4*q:4*q+4], free[4*q%len(free):])
	}
}

// transposeQuad transposes 4 by 4 words in each 128-bit part of four registers.
func (m *machine) transposeQuad(r, t []vec) {
	a, b, c, d := r[0].op(), r[1].op(), r[2].op(), r[3].op()
	if m.isa == sse41 {
		t0, t1, t2, t3 := t[0].op(), t[1].op(), t[2].op(), t[3].op()
		m.MOVO(a, t0)
		m.PUNPCKLLQ(b, t0)
		m.MOVO(a, t1)
		m.PUNPCKHLQ(b, t1)
		m.MOVO(c, t2)
		m.PUNPCKLLQ(d, t2)
		m.MOVO(c, t3)
		m.PUNPCKHLQ(d, t3)
		m.MOVO(t0, a)
		m.PUNPCKLQDQ(t2, a)
		m.MOVO(t0, b)
		m.PUNPCKHQDQ(t2, b)
		m.MOVO(t1, c)
		m.PUNPCKLQDQ(t3, c)
		m.MOVO(t1, d)
		m.PUNPCKHQDQ(t3, d)
		return
	}
	m.VPUNPCKLDQ(b, a, t[0].op())
	m.VPUNPCKHDQ(b, a, t[1].op())
	m.VPUNPCKLDQ(d, c, t[2].op())
	m.VPUNPCKHDQ(d, c, t[3].op())
	m.VPUNPCKLQDQ(t[2].op(), t[0].op(), a)
	m.VPUNPCKHQDQ(t[2].op(), t[0].op(), b)
	m.VPUNPCKLQDQ(t[3].op(), t[1].op(), c)
	m.VPUNPCKHQDQ(t[3].op(), t[1].op(), d)
}

// storeTransposed is the inverse of loadTransposed. It destroys the registers.
func (m *machine) storeTransposed(in, free []vec, lanes int, to func(lane int) operand.Mem) {
	if lanes == 16 {
		m.storeHalves(in, free, to)
		return
	}
	for q := range len(in) / 4 {
		quad := in[4*q : 4*q+4]
		m.transposeQuad(quad, free[4*q%len(free):])
		for j, r := range quad {
			m.storeParts(r, func(i int) operand.Mem { return to(4*i + j).Offset(16 * q) })
		}
	}
}

// loadHalves is loadTransposed for eight words of sixteen lanes. Loads of 32 bytes take half as
// many instructions as those of 16.
func (m *machine) loadHalves(out, free []vec, from func(lane int) operand.Mem) {
	u, v := free[:4], out[4:]
	for j := range 4 {
		for i, r := range []vec{u[j], v[j]} {
			m.load(from(8*i+j), r.at(32))
			m.VINSERTI64X4(operand.U8(1), from(8*i+4+j), r.op(), r.op())
		}
	}
	m.transposeQuad(u, out[:4])
	m.transposeQuad(v, free[4:])
	// Parts 0 and 2 are words 0 to 3 of four lanes each, parts 1 and 3 are words 4 to 7.
	for w := range 4 {
		m.VSHUFI32X4(operand.U8(0x88), v[w].op(), u[w].op(), out[w].op())
		m.VSHUFI32X4(operand.U8(0xDD), v[w].op(), u[w].op(), v[w].op())
	}
}

// storeHalves is the inverse of loadHalves.
func (m *machine) storeHalves(in, free []vec, to func(lane int) operand.Mem) {
	a, b, low, high := in[:4], in[4:8], free[4], free[5]
	m.transposeQuad(a, free)
	m.transposeQuad(b, free)
	m.load(m.data("lowParts", []uint32{0, 0, 1, 0, 8, 0, 9, 0, 2, 0, 3, 0, 10, 0, 11, 0}), low)
	m.load(m.data("highParts", []uint32{4, 0, 5, 0, 12, 0, 13, 0, 6, 0, 7, 0, 14, 0, 15, 0}), high)
	for j := range 4 {
		for i, parts := range []vec{low, high} {
			m.VMOVDQA64(parts.op(), free[i].op())
			m.VPERMI2Q(b[j].op(), a[j].op(), free[i].op())
			m.store(free[i].at(32), to(8*i+j))
			m.VEXTRACTI64X4(operand.U8(1), free[i].op(), to(8*i+4+j))
		}
	}
}

// storeBlocks writes sixteen words of sixteen lanes, 64 bytes each.
func (m *machine) storeBlocks(in, free []vec, to func(lane int) operand.Mem) {
	for q := range 4 {
		m.transposeQuad(in[4*q:4*q+4], free)
	}
	x, y := free[0].op(), free[1].op()
	for j := range 4 {
		for i, parts := range []uint8{0x44, 0xEE} {
			m.VSHUFI32X4(operand.U8(parts), in[4+j].op(), in[j].op(), x)
			m.VSHUFI32X4(operand.U8(parts), in[12+j].op(), in[8+j].op(), y)
			m.VSHUFI32X4(operand.U8(0x88), y, x, free[2].op())
			m.VSHUFI32X4(operand.U8(0xDD), y, x, free[3].op())
			m.store(free[2], to(8*i+j))
			m.store(free[3], to(8*i+4+j))
		}
	}
}
