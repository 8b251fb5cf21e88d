package main

import (
	"strconv"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Row form: registers a, b, c, d hold the rows of the 4 by 4 states of one input, or of two or four
// inputs side by side. Its speed is limited by latency: six steps per half round. For the
// diagonals, rows a, c and d turn and b stays: b is always the last row to be ready, so no shuffle
// is on the critical path. The message row is added to a before b is.
type rows struct {
	a, b, c, d vec
	free       [2]vec
	turning
}

// turning is the way to turn the result of an exclusive or, turn(x ^ y), where the chain waits for
// y.
type turning int

const (
	// byRotation is one exclusive or and one rotation, or its replacement.
	byRotation turning = iota
	// byShifts is for AVX-512 with rotations of two cycles (AMD Zen 4): x is turned before, y is
	// shifted both ways at the same time, and one instruction joins the three. That takes two cycles
	// of the chain instead of three.
	byShifts
)

// suffix ends the names of functions that turn in this way.
func (t turning) suffix() string { return [...]string{"", "Shifts"}[t] }

// rowWords are the words of the schedule that message row k of a round takes, lane by lane. In the
// second half lane j computes diagonal j-1, because b stays.
var rowWords = [4][4]int{{0, 2, 4, 6}, {1, 3, 5, 7}, {14, 8, 10, 12}, {15, 9, 11, 13}}

// The shuffles that turn a row: word i becomes word i-1, i-2 or i-3.
const (
	turn1 = 0x39
	turn2 = 0x4E
	turn3 = 0x93
)

// halfRound adds message row k of a round. The order matters: ports get instructions in order, so
// those that are not on the chain are placed where the chain leaves ports idle.
func (m *machine) halfRound(r rows, k int, row operand.Op) {
	turn := [2]int{16, 12}
	if k%2 == 1 {
		turn = [2]int{8, 7}
	}
	m.add(r.a, r.a, row)
	m.turnBefore(r, r.d, turn[0])
	m.add(r.a, r.a, r.b.op())
	m.turnBefore(r, r.b, turn[1])
	m.xorTurned(r, r.d, r.a, turn[0])
	m.add(r.c, r.c, r.d.op())
	m.xorTurned(r, r.b, r.c, turn[1])
	switch k {
	case 1:
		m.shuffle(r.a, turn3)
		m.shuffle(r.c, turn1)
		m.shuffle(r.d, turn2)
	case 3:
		m.shuffle(r.a, turn1)
		m.shuffle(r.c, turn3)
		m.shuffle(r.d, turn2)
	}
}

// turnBefore turns x, if that is done before y is known.
func (m *machine) turnBefore(r rows, x vec, n int) {
	if r.turning == byShifts {
		m.VPRORD(operand.U8(n), x.op(), x.op())
	}
}

// xorTurned sets x to x ^ y turned right by n bits; turnBefore has been called.
func (m *machine) xorTurned(r rows, x, y vec, n int) {
	if r.turning == byRotation {
		m.xor(x, y.op())
		m.ror(x, n, r.free[0]).emit()
		return
	}
	const xorOfThree = 0x96
	m.VPSRLD(operand.U8(n), y.op(), r.free[0].op())
	m.VPSLLD(operand.U8(32-n), y.op(), r.free[1].op())
	m.VPTERNLOGD(operand.U8(xorOfThree), r.free[0].op(), r.free[1].op(), x.op())
}

func (m *machine) shuffle(r vec, order int) {
	if m.isa == sse41 {
		m.PSHUFD(operand.U8(order), r.op(), r.op())
		return
	}
	m.VPSHUFD(operand.U8(order), r.op(), r.op())
}

const oneDoc = `is the chaining value of a message of 0 to 1024 bytes. If rest is
not nil, the other half of the output of its last block goes there.`

// rowOne hashes one message of at most a chunk. Without masked loads, the caller passes a
// zero-padded copy of an incomplete last block in tail.
func (m *machine) rowOne(how turning) {
	if m.isa == avx512VL {
		m.begin("hash1"+how.suffix(), "func(out, rest, in *byte, length int, key *byte, counter uint64, all, first, last uint32)", oneDoc)
		m.setMasks()
	} else {
		m.begin("hash1", "func(out, rest, in *byte, length int, tail, key *byte, counter uint64, all, first, last uint32)", oneDoc)
	}
	out, in, length, key := m.param("out"), m.param("in"), m.param("length"), m.param("key")
	rest, counter := m.param("rest"), m.param("counter")
	all, flags, last := m.param32("all"), m.param32("first"), m.param32("last")
	m.ORL(all, flags)
	v := vecs(0, 8, 16)
	r := rows{v[0], v[1], v[2], v[3], [2]vec{v[4], v[7]}, how}
	h := v[5:7]
	m.load(at(key, 0), r.a)
	m.load(at(key, 16), r.b)
	block, compress, done := m.label("block"), m.label("compress"), m.label("done")
	size, sizeFlags := m.GP64(), m.GP64()
	m.Label(string(block))
	m.MOVQ(operand.U32(64), size)
	m.CMPQ(length, operand.U8(64))
	m.JA(compress)
	m.ORL(last, flags)
	m.CMPQ(length, operand.U8(64))
	m.JE(compress)
	m.MOVQ(length, size)
	if m.isa == avx512VL {
		m.padBlock(in, length, key)
	} else {
		m.Load(m.Param("tail"), in)
	}
	m.Label(string(compress))
	m.load(m.iv, r.c)
	m.MOVL(flags, sizeFlags.As32())
	m.SHLQ(operand.U8(32), sizeFlags)
	m.ORQ(size, sizeFlags)
	m.pair(counter, sizeFlags, r.d)
	m.copyVector(r.a.op(), h[0].op(), r.a)
	m.copyVector(r.b.op(), h[1].op(), r.b)
	m.oneRounds(r, in, 7+int(how))
	m.xor(r.a, r.c.op())
	m.xor(r.b, r.d.op())
	m.ADDQ(operand.U8(64), in)
	m.MOVL(all, flags)
	m.SUBQ(operand.U8(64), length)
	m.JA(block)
	m.store(r.a, at(out, 0))
	m.store(r.b, at(out, 16))
	m.TESTQ(rest, rest)
	m.JZ(done)
	m.xor(h[0], r.c.op())
	m.xor(h[1], r.d.op())
	m.store(h[0], at(rest, 0))
	m.store(h[1], at(rest, 16))
	m.Label(string(done))
	m.RET()
}

// pair sets a vector to two words of 64 bits.
func (m *machine) pair(low, high reg.Register, to vec) {
	if m.isa == sse41 {
		m.MOVQ(low, to.op())
		m.PINSRQ(operand.U8(1), high, to.op())
		return
	}
	m.VMOVQ(low, to.op())
	m.VPINSRQ(operand.U8(1), high, to.op(), to.op())
}

// padBlock copies a last block of fewer than 64 bytes to the stack, padded with zeros, by one
// masked load. An empty block is read from another address: a masked load of an unmapped address is
// very slow.
func (m *machine) padBlock(in, length, key reg.GPVirtual) {
	mask := m.GP64()
	m.TESTQ(length, length)
	m.CMOVQEQ(key, in)
	m.MOVQ(operand.I32(-1), mask)
	m.BZHIQ(length, mask, mask)
	m.KMOVQ(mask, reg.K1)
	m.VMOVDQU8_Z(at(in, 0), reg.K1, reg.Z5)
	m.LEAQ(m.AllocLocal(128).Offset(63), in)
	m.ANDQ(operand.I8(-64), in)
	m.VMOVDQU64(reg.Z5, at(in, 0))
	m.VZEROUPPER()
}

// load reads a whole register.
func (m *machine) load(from operand.Mem, to vec) { m.copyVector(from, to.op(), to) }

// store writes a whole register.
func (m *machine) store(from vec, to operand.Mem) { m.copyVector(from.op(), to, from) }

func (m *machine) copyVector(from, to operand.Op, v vec) {
	switch {
	case m.isa == sse41:
		m.MOVOU(from, to)
	case m.isa == avx512VL && (v.n >= 16 || v.width == 64):
		m.VMOVDQU32(from, to)
	default:
		m.VMOVDQU(from, to)
	}
}

// oneRounds is the seven rounds of one input, whose message is at in.
// Registers from number free on are free.
func (m *machine) oneRounds(r rows, in reg.Register, free int) {
	if m.isa == sse41 {
		m.plannedRounds([]rows{r}, free, func(_, q int, to vec) { m.load(at(in, 16*q), to) })
		return
	}
	next := 0
	for _, s := range schedule {
		for k, words := range rowWords {
			row := vecs(free+next%2*4, 4, 16)
			next++
			var from [4]operand.Mem
			for i, w := range words {
				from[i] = at(in, 4*s[w])
			}
			m.gatherRow(row, from)
			m.halfRound(r, k, row[0].op())
		}
	}
}

var oneMasks = [4]reg.Register{1: reg.K2, 2: reg.K3, 3: reg.K4}

// setMasks makes the masks that gatherRow uses.
func (m *machine) setMasks() {
	for k := 1; k < 4; k++ {
		mask := m.GP32()
		m.MOVL(operand.U32(1<<k), mask)
		m.KMOVW(mask, oneMasks[k])
	}
}

// gatherRow reads four words into free[0] without a shuffle: broadcasts from memory do not use the
// ports of the rounds.
func (m *machine) gatherRow(free []vec, from [4]operand.Mem) {
	m.VPBROADCASTD(from[0], free[0].op())
	if m.isa == avx512VL {
		for i := 1; i < 4; i++ {
			m.VPBROADCASTD(from[i], oneMasks[i], free[0].op())
		}
		return
	}
	for i := 1; i < 4; i++ {
		m.VPBROADCASTD(from[i], free[i].op())
	}
	m.VPBLENDD(operand.U8(2), free[1].op(), free[0].op(), free[0].op())
	m.VPBLENDD(operand.U8(8), free[3].op(), free[2].op(), free[2].op())
	m.VPBLENDD(operand.U8(12), free[2].op(), free[0].op(), free[0].op())
}

// rowStep is the step of two inputs in ymm or four in zmm registers. With AVX2, four inputs are two
// sets of registers: each works while the other waits.
func (m *machine) rowStep(lanes int, how turning) {
	m.begin("step"+itoa(lanes)+how.suffix(), stepSignature, stepDoc)
	cvs, ptr, d := m.param("cvs"), m.param("ptr"), m.param("d")
	blocks, key := m.param("blocks"), m.param("key")
	sets, free := m.rowSets(lanes, how)
	each := lanes / len(sets)
	off := m.GP64()
	m.XORQ(off, off)
	in := make([]reg.Register, lanes)
	for i := range in {
		in[i] = m.GP64()
		m.MOVQ(at(ptr, 8*i), in[i])
	}
	restored, started, loop := m.label("restored"), m.label("started"), m.label("block")
	cv := func(set, half int) func(lane int) operand.Mem {
		return func(lane int) operand.Mem { return at(cvs, cvLen*(set*each+lane)+16*half) }
	}
	m.TESTQ(key, key)
	m.JZ(restored)
	for _, r := range sets {
		m.broadcast(at(key, 0), r.a)
		m.broadcast(at(key, 16), r.b)
	}
	m.JMP(started)
	m.Label(string(restored))
	for i, r := range sets {
		m.loadParts(r.a, cv(i, 0))
		m.loadParts(r.b, cv(i, 1))
	}
	m.Label(string(started))
	flags := m.beginFlags(blocks)
	if m.isa == avx512VL {
		m.maskHighHalves()
	}
	m.Label(string(loop))
	for i, r := range sets {
		m.broadcast(m.iv, r.c)
		m.lengthAndFlags(flags, r.d)
		m.xor(r.d, at(d, 16*each*i))
	}
	m.plannedRounds(sets, free, func(set, q int, to vec) {
		m.loadParts(to, func(lane int) operand.Mem {
			return operand.Mem{Base: in[set*each+lane], Index: off, Scale: 1, Disp: 16 * q}
		})
	})
	for _, r := range sets {
		m.xor(r.a, r.c.op())
		m.xor(r.b, r.d.op())
	}
	m.ADDQ(operand.U8(64), off)
	m.nextFlags(flags, blocks)
	m.DECQ(blocks)
	m.JNZ(loop)
	for i, r := range sets {
		m.storeParts(r.a, cv(i, 0))
		m.storeParts(r.b, cv(i, 1))
	}
	m.VZEROUPPER()
	m.RET()
}

// rowParents is the parents of this many pairs of consecutive chaining values.
func (m *machine) rowParents(lanes int, how turning) {
	m.begin("parents"+itoa(lanes)+how.suffix(), "func(out, in, key *byte, flags uint32)",
		"writes the parents of "+itoa(lanes)+" pairs of chaining values, which lie one after the other.")
	out, in, key, flags := m.param("out"), m.param("in"), m.param("key"), m.param32("flags")
	sets, free := m.rowSets(lanes, how)
	each := lanes / len(sets)
	if m.isa == avx512VL {
		m.maskHighHalves()
	}
	for _, r := range sets {
		m.broadcast(at(key, 0), r.a)
		m.broadcast(at(key, 16), r.b)
		m.broadcast(m.iv, r.c)
		m.lengthAndFlags(flags, r.d)
	}
	m.plannedRounds(sets, free, func(set, q int, to vec) {
		m.loadParts(to, func(lane int) operand.Mem { return at(in, 64*(set*each+lane)+16*q) })
	})
	for i, r := range sets {
		m.xor(r.a, r.c.op())
		m.xor(r.b, r.d.op())
		m.storeParts(r.a, func(lane int) operand.Mem { return at(out, cvLen*(each*i+lane)) })
		m.storeParts(r.b, func(lane int) operand.Mem { return at(out, cvLen*(each*i+lane)+16) })
	}
	m.VZEROUPPER()
	m.RET()
}

// rowSets are the registers for the rows of this many inputs, and the number of the first free
// register.
func (m *machine) rowSets(lanes int, how turning) (sets []rows, free int) {
	width := 16 * lanes
	if m.isa == avx2 {
		width = 32
	}
	n := 16 * lanes / width
	for i := range n {
		r := vecs(4*i, 4, width)
		sets = append(sets, rows{r[0], r[1], r[2], r[3], [2]vec{{4 * n, width}, {4*n + 1, width}}, how})
	}
	return sets, 4*n + 1 + int(how)
}

// lengthAndFlags sets d to the length of a full block and the flags of the block, in the last words
// of each input.
func (m *machine) lengthAndFlags(flags reg.GPVirtual, d vec) {
	words := m.GP64()
	m.MOVL(flags, words.As32())
	m.SHLQ(operand.U8(32), words)
	m.ORQ(operand.U8(64), words)
	if m.isa == avx512VL {
		m.VPBROADCASTQ_Z(words, reg.K1, d.op())
		return
	}
	m.VMOVQ(words, d.at(16).op())
	m.VPSLLDQ(operand.U8(8), d.at(16).op(), d.at(16).op())
	m.VINSERTI128(operand.U8(1), d.at(16).op(), d.op(), d.op())
}

// maskHighHalves makes the mask that lengthAndFlags uses.
func (m *machine) maskHighHalves() {
	mask := m.GP32()
	m.MOVL(operand.U32(0xAA), mask)
	m.KMOVW(mask, reg.K1)
}

// broadcast reads 16 bytes into every 128-bit part of a register.
func (m *machine) broadcast(from operand.Mem, to vec) {
	if m.isa == avx512VL {
		m.VBROADCASTI32X4(from, to.op())
		return
	}
	m.VBROADCASTI128(from, to.op())
}

// loadParts reads 16 bytes for each 128-bit part of a register.
func (m *machine) loadParts(to vec, from func(part int) operand.Mem) {
	for i := range to.width / 16 {
		switch {
		case i == 0:
			m.load(from(0), to.at(16))
		case m.isa == avx512VL:
			m.VINSERTI32X4(operand.U8(i), from(i), to.op(), to.op())
		default:
			m.VINSERTI128(operand.U8(i), from(i), to.op(), to.op())
		}
	}
}

// storeParts is the inverse of loadParts.
func (m *machine) storeParts(from vec, to func(part int) operand.Mem) {
	for i := range from.width / 16 {
		switch {
		case i == 0:
			m.store(from.at(16), to(0))
		case m.isa == avx512VL:
			m.VEXTRACTI32X4(operand.U8(i), from.op(), to(i))
		default:
			m.VEXTRACTI128(operand.U8(i), from.op(), to(i))
		}
	}
}
