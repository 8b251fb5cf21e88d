package main

import (
	"slices"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Column form: register i holds word i of as many inputs as it has lanes. With 32 registers the state and the message
// of a block fit exactly, so nothing is spilled.

const stepSignature = "func(cvs, ptr, d *byte, blocks int, key *byte, all, first, last uint32)"

// stepDoc is the documentation of the steps.
const stepDoc = `absorbs the next blocks of its inputs into their chaining values. With a key the
inputs begin there, otherwise with what is in cvs.`

// columnFrame is the stack frame of the column kernels, if there are not enough registers.
type columnFrame struct {
	message operand.Mem // sixteen vectors
	c0      operand.Mem // word 8 of the state
	cv      operand.Mem // eight vectors
	aside   operand.Mem // four vectors
	count   operand.Mem // words 12 and 13 of the state
}

// frame reserves the stack of an AVX2 kernel, aligned to its vectors.
func (m *machine) frame() (f columnFrame) {
	if m.isa != avx2 {
		return f
	}
	const width = 32
	base := m.alignedLocal(32, width)
	return columnFrame{message: at(base, 0), c0: at(base, 16*width), cv: at(base, 17*width), aside: at(base, 25*width),
		count: at(base, 29*width)}
}

// alignedLocal reserves n vectors on the stack.
func (m *machine) alignedLocal(n, width int) reg.Register {
	base := m.GP64()
	m.LEAQ(m.AllocLocal(n*width+width).Offset(width-1), base)
	m.ANDQ(operand.I8(-width), base)
	return base
}

// columnStep is the step of 16 inputs in zmm or 8 in ymm registers. With AVX2 the message is on the stack, and so is
// word 8 of the state, to leave a register free for the rotations.
func (m *machine) columnStep(lanes int) {
	m.begin("step"+itoa(lanes), stepSignature, stepDoc)
	cvs, ptr, d, key := m.param("cvs"), m.param("ptr"), m.param("d"), m.param("key")
	f := m.frame()
	state := vecs(0, 16, 4*lanes)
	off, loop := m.GP64(), m.label("block")
	m.XORQ(off, off)
	blocks := m.param("blocks")
	m.startState(state[:8], state[8:], cvs, key, lanes)
	flags := m.beginFlags(blocks)
	m.Label(string(loop))
	word := m.loadMessage(f, state[8:], lanes, func(lane int) operand.Mem { return m.blockOf(ptr, lane, off) })
	m.load(at(d, 0), state[12])
	m.load(at(d, 64), state[13])
	m.VPBROADCASTD(m.blockLen, state[14].op())
	m.xor(state[14], at(d, 128))
	m.broadcastWord(flags.current, state[15])
	m.xor(state[15], at(d, 192))
	m.columnCompress(state, f, word)
	m.nextBlock(flags, blocks, off, loop)
	m.storeTransposed(state[:8], state[8:], lanes, func(lane int) operand.Mem { return at(cvs, cvLen*lane) })
	m.VZEROUPPER()
	m.RET()
}

// columnCompress takes words 0 to 7 and 12 to 15 of a state to its next chaining value.
func (m *machine) columnCompress(state []vec, f columnFrame, word func(int) operand.Op) {
	for i := range 4 {
		m.VPBROADCASTD(m.iv.Offset(4*i), state[8+i].op())
	}
	if m.isa == avx2 {
		m.store(state[8], f.c0)
	}
	m.columnRounds(state, f, word)
	for i := range 8 {
		m.xor(state[i], m.stateWord(state, f, 8+i))
	}
}

// blockOf is the address of the next block of a lane.
func (m *machine) blockOf(ptr reg.Register, lane int, off reg.Register) operand.Mem {
	p := m.GP64()
	m.MOVQ(at(ptr, 8*lane), p)
	return operand.Mem{Base: p, Index: off, Scale: 1}
}

// stateWord is the location of word i of the state.
func (m *machine) stateWord(state []vec, f columnFrame, i int) operand.Op {
	if m.isa == avx2 && i == 8 {
		return f.c0
	}
	return state[i].op()
}

// loadMessage transposes a block of every lane, and returns the location of each word.
func (m *machine) loadMessage(f columnFrame, free []vec, lanes int, from func(int) operand.Mem) func(int) operand.Op {
	if m.isa != avx2 {
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
			m.store(free[i], f.message.Offset(32*(4*q+i)))
		}
	}
	return func(w int) operand.Op { return f.message.Offset(32 * w) }
}

// broadcastWord copies a word to every lane.
func (m *machine) broadcastWord(word reg.GPVirtual, to vec) {
	if m.isa == avx2 {
		m.VMOVD(word.As32(), to.at(16).op())
		m.VPBROADCASTD(to.at(16).op(), to.op())
		return
	}
	m.VPBROADCASTD(word.As32(), to.op())
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

// columnRounds is the seven rounds, the four quarter rounds of each half side by side. In zmm registers, each is three quarters
// of a step behind the one before it through all rounds: there are fewer ports for rotations, so they must not come four at a
// time.
func (m *machine) columnRounds(v []vec, f columnFrame, word func(int) operand.Op) {
	const stepTime, halfTime = 4, 14 * 4
	behind := 0
	if v[0].width == 64 {
		behind = 3
	}
	// The last input of a diagonal quarter round comes from the column quarter round after its own.
	order := [2][4]int{{0, 1, 2, 3}, {1, 2, 3, 0}}
	type timed struct {
		at int
		do func()
	}
	var all []timed
	for r, s := range schedule {
		for half, mixes := range [][4][4]int{columns, diagonals} {
			for i, g := range mixes {
				at := (2*r+half)*halfTime + behind*order[half][i]
				for step, do := range m.quarterRound(v, f, g, word(s[8*half+2*i]), word(s[8*half+2*i+1])) {
					all = append(all, timed{at + step*stepTime, do})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return a.at - b.at })
	for _, t := range all {
		t.do()
	}
}

// quarterRound is the steps of a quarter round, in order. With AVX2, a sum that is word 8 is stored before its register is used
// for a rotation.
func (m *machine) quarterRound(v []vec, f columnFrame, g [4]int, words ...operand.Op) (steps []func()) {
	a, b, c, d := v[g[0]], v[g[1]], v[g[2]], v[g[3]]
	spare := v[8] // free in AVX2, where this word is in memory
	inMemory := m.isa == avx2 && g[2] == 8
	for i, turn := range [][2]int{{16, 12}, {8, 7}} {
		steps = append(steps,
			func() { m.add(a, a, words[i]) },
			func() { m.add(a, a, b.op()) },
			func() { m.xor(d, a.op()) },
			func() { m.ror(d, turn[0], spare) },
			func() {
				m.add(c, d, m.stateWord(v, f, g[2]))
				if inMemory {
					m.xor(b, c.op())
					m.store(c, f.c0)
				}
			},
			func() {
				if !inMemory {
					m.xor(b, c.op())
				}
			},
			func() { m.ror(b, turn[1], spare) })
	}
	return steps
}

// columnRoot writes groups of as many output blocks as there are lanes.
func (m *machine) columnRoot(lanes int) {
	m.begin("root"+itoa(lanes), "func(out, node *byte, counter uint64, flags uint32, groups int)",
		"writes groups of "+itoa(lanes)+" blocks of root output from block number counter on.")
	out, node, counter := m.param("out"), m.param("node"), m.param("counter")
	flags, groups := m.param32("flags"), m.param("groups")
	f := m.frame()
	state := vecs(0, 16, 4*lanes)
	loop := m.label("group")
	var word func(int) operand.Op
	if m.isa == avx2 {
		word = m.broadcastNode(f, node, state)
		m.Label(string(loop))
	} else { // if storing the output needs the registers of the message
		m.Label(string(loop))
		word = m.broadcastNode(f, node, state)
	}
	m.broadcastKey(node, state) // its chaining value
	for i := range 4 {
		m.VPBROADCASTD(m.iv.Offset(4*i), state[8+i].op())
	}
	if m.isa == avx2 {
		m.store(state[8], f.c0)
	}
	m.countLanes(counter, state)
	m.VPBROADCASTD(at(node, nodeLen), state[14].op())
	m.broadcastWord(flags, state[15])
	m.columnRounds(state, f, word)
	if m.isa == avx2 {
		m.load(f.c0, state[8])
	}
	for i := range 8 {
		m.xor(state[i], state[i+8].op())
	}
	to := func(lane int) operand.Mem { return at(out, 64*lane) }
	if m.isa == avx2 {
		m.storeRootAVX2(f, state, to)
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
	m.VZEROUPPER()
	m.RET()
}

// storeRootAVX2 finishes the second half of the output, and makes room for the transpose.
func (m *machine) storeRootAVX2(f columnFrame, state []vec, to func(int) operand.Mem) {
	for i := range 8 {
		m.xor(state[i+8], f.cv.Offset(32*i))
	}
	for i := range 4 {
		m.store(state[12+i], f.aside.Offset(32*i))
	}
	m.storeTransposed(state[:12], state[12:], 8, to)
	for i := range 4 {
		m.load(f.aside.Offset(32*i), state[12+i])
	}
	m.storeTransposed(state[12:], state[:4], 8, func(lane int) operand.Mem { return to(lane).Offset(48) })
}

// broadcastNode copies the block of a node to all lanes, from where the rounds read it for every group.
func (m *machine) broadcastNode(f columnFrame, node reg.Register, free []vec) func(int) operand.Op {
	if m.isa != avx2 {
		message := vecs(16, 16, free[0].width)
		for i := range 16 {
			m.VPBROADCASTD(at(node, nodeBlock+4*i), message[i].op())
		}
		return func(w int) operand.Op { return message[w].op() }
	}
	for i := range 16 {
		m.VPBROADCASTD(at(node, nodeBlock+4*i), free[i].op())
		m.store(free[i], f.message.Offset(32*i))
	}
	for i := range 8 {
		m.VPBROADCASTD(at(node, nodeCV+4*i), free[i].op())
		m.store(free[i], f.cv.Offset(32*i))
	}
	return func(w int) operand.Op { return f.message.Offset(32 * w) }
}

// countLanes sets words 12 and 13 of the state to counter and the numbers that follow it. Words 14 and 15 are free.
func (m *machine) countLanes(counter reg.GPVirtual, state []vec) {
	low, high, a, b := state[12].op(), state[13].op(), state[14].op(), state[15].op()
	if m.isa == avx2 {
		m.VMOVQ(counter, state[14].at(16).op())
		m.VPBROADCASTQ(state[14].at(16).op(), a)
		m.VPADDQ(m.counting.Offset(32), a, b)
		m.VPADDQ(m.counting, a, a)
		m.VSHUFPS(operand.U8(0x88), b, a, low)
		m.VPERMQ(operand.U8(0xD8), low, low)
		m.VSHUFPS(operand.U8(0xDD), b, a, high)
		m.VPERMQ(operand.U8(0xD8), high, high)
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
