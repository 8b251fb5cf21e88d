package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Column form: register i holds word i of as many inputs as it has lanes. With 32 registers the
// state and the message of a block fit exactly, so nothing is spilled.

const stepSignature = "func(cvs, ptr, d *byte, blocks int, key *byte, all, first, last uint32)"

// stepDoc is the documentation of the steps.
const stepDoc = `absorbs the next blocks of its inputs into their chaining values. With a key the
inputs begin there, otherwise with what is in cvs.`

// columnFrame is the stack frame of a column kernel.
type columnFrame struct {
	message operand.Mem // sixteen vectors
	word8   operand.Mem // word 8 of the state
	cv      operand.Mem // eight vectors
	aside   operand.Mem // four vectors
	count   operand.Mem // words 12 and 13 of the state
}

// word gives the location of each word of the message.
func (f columnFrame) word(lanes int) func(int) operand.Op {
	return func(w int) operand.Op { return f.message.Offset(4 * lanes * w) }
}

// frame reserves the stack of a kernel with sixteen registers, aligned to them.
func (m *machine) frame(lanes int) (f columnFrame) {
	if m.isa == avx512VL {
		return f
	}
	width := 4 * lanes
	base := m.alignedLocal(31, width)
	return columnFrame{message: at(base, 0), word8: at(base, 16*width), cv: at(base, 17*width), aside: at(base, 25*width),
		count: at(base, 29*width)}
}

// alignedLocal reserves n vectors on the stack.
func (m *machine) alignedLocal(n, width int) reg.Register {
	base := m.GP64()
	m.LEAQ(m.AllocLocal(n*width+width).Offset(width-1), base)
	m.ANDQ(operand.I8(-width), base)
	return base
}

// columnStep is the step of 16 inputs in zmm, 8 in ymm or 4 in xmm registers. With sixteen
// registers the message is on the stack, and so is word 8 of the state, to leave a register free
// for the rotations.
func (m *machine) columnStep(lanes int) {
	m.begin("step"+itoa(lanes), stepSignature, stepDoc)
	f := m.frame(lanes)
	s := m.beginStep(lanes)
	m.Label(string(s.loop))
	word := m.loadMessage(f, s.state[8:], lanes, func(lane int) operand.Mem { return m.blockOf(s.ptr, lane, s.off) })
	m.rowD(s)
	m.columnCompress(s.state, f, word)
	m.ADDQ(operand.U8(64), s.off)
	m.endStep(s)
}

// step is what the loop over the blocks of a step works with.
type step struct {
	lanes                   int
	state                   []vec
	ptr, off, blocks, flags reg.GPVirtual
	loop                    operand.LabelRef
}

// beginStep is the code before the loop.
func (m *machine) beginStep(lanes int) (s step) {
	s = step{lanes: lanes, state: vecs(0, 16, 4*lanes), ptr: m.param("ptr"), off: m.GP64(), loop: m.label("block")}
	m.startState(s.state[:8], s.state[8:], m.param("cvs"), m.param("key"), lanes)
	m.XORQ(s.off, s.off)
	s.blocks = m.param("blocks")
	s.flags = m.beginFlags(s.blocks)
	return s
}

// endStep is the code after each block, and after the loop.
func (m *machine) endStep(s step) {
	m.nextFlags(s.flags, s.blocks)
	m.DECQ(s.blocks)
	m.JNZ(s.loop)
	cvs := m.param("cvs")
	m.storeTransposed(s.state[:8], s.state[8:], s.lanes, func(lane int) operand.Mem { return at(cvs, cvLen*lane) })
	m.endColumns()
}

// rowD sets words 12 to 15 of the state from those of the inputs.
func (m *machine) rowD(s step) {
	d := m.param("d")
	m.load(at(d, 0), s.state[12])
	m.load(at(d, 64), s.state[13])
	m.spread(m.blockLen, s.state[14])
	m.xorUnaligned(s.state[14], at(d, 128), s.state[8])
	m.broadcastWord(s.flags, s.state[15])
	m.xorUnaligned(s.state[15], at(d, 192), s.state[8])
}

// xorUnaligned sets dst to dst ^ b, where SSE4.1 needs a free register.
func (m *machine) xorUnaligned(dst vec, b operand.Mem, free vec) {
	if m.isa == sse41 {
		m.load(b, free)
		m.xor(dst, free.op())
		return
	}
	m.xor(dst, b)
}

// columnCompress takes words 0 to 7 and 12 to 15 of a state to its next chaining value.
func (m *machine) columnCompress(state []vec, f columnFrame, word func(int) operand.Op) {
	m.loadIV(state)
	m.columnRounds(state, f, word).emit()
	m.foldHalves(state)
}

// loadIV sets words 8 to 11.
func (m *machine) loadIV(state []vec) {
	for i := range 4 {
		m.spread(m.iv.Offset(4*i), state[8+i])
	}
}

// foldHalves makes the next chaining value of the result of the rounds.
func (m *machine) foldHalves(state []vec) {
	for i := range 8 {
		m.xor(state[i], state[8+i].op())
	}
}

// blockOf is the address of the next block of a lane.
func (m *machine) blockOf(ptr reg.Register, lane int, off reg.Register) operand.Mem {
	p := m.GP64()
	m.MOVQ(at(ptr, 8*lane), p)
	return operand.Mem{Base: p, Index: off, Scale: 1}
}

// loadMessage transposes a block of every lane, and returns the location of each word.
func (m *machine) loadMessage(f columnFrame, free []vec, lanes int, from func(int) operand.Mem) func(int) operand.Op {
	if m.isa == avx512VL {
		message := vecs(16, 16, 4*lanes)
		if lanes == 16 {
			m.loadHalves(message[:8], free, from)
			m.loadHalves(message[8:], free, func(lane int) operand.Mem { return from(lane).Offset(32) })
		} else {
			m.loadTransposed(message, free, lanes, from)
		}
		return func(w int) operand.Op { return message[w].op() }
	}
	for q := range 4 {
		m.loadTransposed(free[:4], free[4:], lanes, func(lane int) operand.Mem { return from(lane).Offset(16 * q) })
		for i := range 4 {
			m.store(free[i], f.message.Offset(4*lanes*(4*q+i)))
		}
	}
	return f.word(lanes)
}

// spread copies a word in memory to every lane.
func (m *machine) spread(word operand.Mem, to vec) {
	if m.isa == sse41 {
		m.MOVSS(word, to.op())
		m.PSHUFD(operand.U8(0), to.op(), to.op())
		return
	}
	m.VPBROADCASTD(word, to.op())
}

// broadcastWord copies a word to every lane.
func (m *machine) broadcastWord(word reg.GPVirtual, to vec) {
	switch m.isa {
	case sse41:
		m.MOVQ(word.As64(), to.op())
		m.PSHUFD(operand.U8(0), to.op(), to.op())
	case avx2:
		m.VMOVD(word.As32(), to.at(16).op())
		m.VPBROADCASTD(to.at(16).op(), to.op())
	default:
		m.VPBROADCASTD(word.As32(), to.op())
	}
}

// endColumns returns from a kernel.
func (m *machine) endColumns() {
	if m.isa != sse41 {
		m.VZEROUPPER()
	}
	m.RET()
}

// startState loads the first eight words of the state.
func (m *machine) startState(state, free []vec, cvs, key reg.Register, lanes int) {
	restored, started := m.label("restored"), m.label("started")
	m.TESTQ(key, key)
	m.JZ(restored)
	m.broadcastKey(key, state)
	m.JMP(started)
	m.Label(string(restored))
	m.loadTransposed(state, free, lanes, func(lane int) operand.Mem { return at(cvs, cvLen*lane) })
	m.Label(string(started))
}

// columnRoot writes groups of as many output blocks as there are lanes.
func (m *machine) columnRoot(lanes int) {
	m.begin("root"+itoa(lanes), "func(out, node *byte, counter uint64, flags uint32, groups int)",
		"writes groups of "+itoa(lanes)+" blocks of root output from block number counter on.")
	out, node, counter := m.param("out"), m.param("node"), m.param("counter")
	flags, groups := m.param32("flags"), m.param("groups")
	f := m.frame(lanes)
	state := vecs(0, 16, 4*lanes)
	loop := m.label("group")
	var word func(int) operand.Op
	if m.isa != avx512VL {
		word = m.broadcastNode(f, node, state)
		m.Label(string(loop))
	} else { // if storing the output needs the registers of the message
		m.Label(string(loop))
		word = m.broadcastNode(f, node, state)
	}
	m.broadcastKey(node, state) // its chaining value
	m.loadIV(state)
	m.countLanes(counter, state)
	m.spread(at(node, nodeLen), state[14])
	m.broadcastWord(flags, state[15])
	m.columnRounds(state, f, word).emit()
	m.foldHalves(state)
	to := func(lane int) operand.Mem { return at(out, 64*lane) }
	if m.isa != avx512VL {
		m.storeRoot(f, state, to)
	} else {
		for i := range 8 {
			m.VPXORD_BCST(at(node, nodeCV+4*i), state[i+8].op(), state[i+8].op())
		}
		m.storeBlocks(state, vecs(16, 4, 4*lanes), to)
	}
	m.ADDQ(operand.U32(64*lanes), out)
	m.ADDQ(operand.U8(lanes), counter)
	m.DECQ(groups)
	m.JNZ(loop)
	m.endColumns()
}

// storeRoot finishes the second half of the output, and makes room for the transpose.
func (m *machine) storeRoot(f columnFrame, state []vec, to func(int) operand.Mem) {
	width := state[0].width
	for i := range 8 {
		m.xor(state[i+8], f.cv.Offset(width*i))
	}
	for i := range 4 {
		m.store(state[12+i], f.aside.Offset(width*i))
	}
	m.storeTransposed(state[:12], state[12:], width/4, to)
	for i := range 4 {
		m.load(f.aside.Offset(width*i), state[12+i])
	}
	m.storeTransposed(state[12:], state[:4], width/4, func(lane int) operand.Mem { return to(lane).Offset(48) })
}

// broadcastNode copies the block of a node to all lanes, from where the rounds read it for every
// group.
func (m *machine) broadcastNode(f columnFrame, node reg.Register, free []vec) func(int) operand.Op {
	width := free[0].width
	if m.isa == avx512VL {
		message := vecs(16, 16, width)
		for i := range 16 {
			m.spread(at(node, nodeBlock+4*i), message[i])
		}
		return func(w int) operand.Op { return message[w].op() }
	}
	for i := range 16 {
		m.spread(at(node, nodeBlock+4*i), free[i])
		m.store(free[i], f.message.Offset(width*i))
	}
	for i := range 8 {
		m.spread(at(node, nodeCV+4*i), free[i])
		m.store(free[i], f.cv.Offset(width*i))
	}
	return f.word(width / 4)
}

// countLanes sets words 12 and 13 of the state to counter and the numbers that follow it. Words 14
// and 15 are free.
func (m *machine) countLanes(counter reg.GPVirtual, state []vec) {
	low, high, a, b := state[12].op(), state[13].op(), state[14].op(), state[15].op()
	if m.isa != avx512VL {
		half := m.counting.Offset(state[0].width)
		if m.isa == sse41 {
			m.MOVQ(counter, a)
			m.PSHUFD(operand.U8(0x44), a, a)
			m.MOVO(a, b)
			m.PADDQ(m.counting, a)
			m.PADDQ(half, b)
		} else {
			m.VMOVQ(counter, state[14].at(16).op())
			m.VPBROADCASTQ(state[14].at(16).op(), a)
			m.VPADDQ(half, a, b)
			m.VPADDQ(m.counting, a, a)
		}
		m.shuffleTwo(0x88, state[14], state[15], state[12])
		m.shuffleTwo(0xDD, state[14], state[15], state[13])
		return
	}
	word := m.GP64()
	m.MOVQ(counter, word)
	m.SHRQ(operand.U8(32), word)
	m.VPBROADCASTD(counter.As32(), a)
	m.VPADDD(m.counting, a, low)
	m.VPBROADCASTD(word.As32(), high)
	// If a sum is below its first term, it has passed 2^32.
	m.VPCMPUD(operand.U8(1), a, low, reg.K1)
	m.VPTERNLOGD(operand.U8(0xFF), a, a, a)
	m.VPSUBD(a, high, reg.K1, high)
}

// vecs is n registers from number first on.
func vecs(first, n, width int) []vec {
	v := make([]vec, n)
	for i := range v {
		v[i] = vec{first + i, width}
	}
	return v
}
