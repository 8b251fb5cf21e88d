package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Groups: the chaining values of as many neighbors as there are lanes, in columns, as the rounds
// leave them. Two groups merge into one without a transpose, and only the last group is converted
// to rows.

// groupWords is the number of vectors in a group.
const groupWords = 8

// columnTree is the kernels that make, merge and convert groups.
func (m *machine) columnTree(lanes int) {
	if m.isa == avx512VL {
		m.wovenSpan(lanes)
	} else {
		m.columnSpan(lanes)
	}
	m.columnMerge(lanes)
	m.columnUngroup(lanes)
}

const spanSignature = "func(out, in *byte, counter uint64, key *byte, all, first, last uint32, groups, ahead int)"

// columnSpan makes groups of consecutive whole chunks.
func (m *machine) columnSpan(lanes int) {
	width := 4 * lanes
	m.begin("span"+itoa(lanes), spanSignature, `hashes groups of whole chunks, the first of which has number
counter. Unless ahead is 0, the memory so many bytes ahead is fetched into the cache.`)
	out, in, counter, key := m.param("out"), m.param("in"), m.param("counter"), m.param("key")
	groups, ahead := m.param("groups"), m.param("ahead")
	f := m.frame(lanes)
	state := vecs(0, 16, width)
	group, loop, near := m.label("group"), m.label("block"), m.label("near")
	m.Label(string(group))
	m.countLanes(counter, state)
	m.store(state[12], f.count)
	m.store(state[13], f.count.Offset(width))
	m.broadcastKey(key, state)
	blocks := m.GP64()
	m.MOVQ(operand.U32(16), blocks)
	flags := m.beginFlags(blocks)
	m.Label(string(loop))
	m.TESTQ(ahead, ahead)
	m.JZ(near)
	for lane := range lanes {
		m.PREFETCHT0(operand.Mem{Base: in, Index: ahead, Scale: 1, Disp: 1024 * lane})
	}
	m.Label(string(near))
	word := m.loadMessage(f, state[8:], lanes, func(lane int) operand.Mem { return at(in, 1024*lane) })
	m.spanRow(f, flags, state)
	m.columnCompress(state, f, word)
	m.ADDQ(operand.U8(64), in)
	m.nextFlags(flags, blocks)
	m.DECQ(blocks)
	m.JNZ(loop)
	m.ADDQ(operand.U32(1024*(lanes-1)), in)
	m.endGroup(out, counter, groups, state, group)
}

// spanRow sets words 12 to 15 of the state.
func (m *machine) spanRow(f columnFrame, flags reg.GPVirtual, state []vec) {
	m.load(f.count, state[12])
	m.load(f.count.Offset(state[0].width), state[13])
	m.spread(m.blockLen, state[14])
	m.broadcastWord(flags, state[15])
}

// endGroup stores a group, and goes to the next one.
func (m *machine) endGroup(out, counter, groups reg.GPVirtual, state []vec, next operand.LabelRef) {
	width := state[0].width
	m.storeGroup(state, out)
	m.ADDQ(operand.U32(groupWords*width), out)
	m.ADDQ(operand.U8(width/4), counter)
	m.DECQ(groups)
	m.JNZ(next)
	m.endColumns()
}

// columnMerge makes one group of the parents of two.
func (m *machine) columnMerge(lanes int) {
	width := 4 * lanes
	m.begin("merge"+itoa(lanes), "func(out, in, key *byte, flags uint32, pairs int)",
		`makes groups of the parents of pairs of groups. out may be in.`)
	out, in, key := m.param("out"), m.param("in"), m.param("key")
	flags, pairs := m.param32("flags"), m.param("pairs")
	f := m.frame(lanes)
	state := vecs(0, 16, width)
	loop := m.label("pair")
	m.Label(string(loop))
	word := m.unzip(f, state, in)
	m.broadcastKey(key, state)
	m.xor(state[12], state[12].op())
	m.xor(state[13], state[13].op())
	m.spread(m.blockLen, state[14])
	m.broadcastWord(flags, state[15])
	m.columnCompress(state, f, word)
	m.storeGroup(state, out)
	m.ADDQ(operand.U32(groupWords*width), out)
	m.ADDQ(operand.U32(2*groupWords*width), in)
	m.DECQ(pairs)
	m.JNZ(loop)
	m.endColumns()
}

// unzip makes the message of the parents of two groups: the left children are the even lanes, the
// right ones the odd lanes. It returns the location of each word.
func (m *machine) unzip(f columnFrame, free []vec, in reg.Register) func(int) operand.Op {
	if m.isa != avx512VL {
		width := free[0].width
		for i := range groupWords {
			m.load(at(in, width*i), free[0])
			m.load(at(in, width*(groupWords+i)), free[1])
			for half, order := range []uint8{0x88, 0xDD} {
				m.shuffleTwo(order, free[0], free[1], free[2])
				m.store(free[2], f.message.Offset(width*(groupWords*half+i)))
			}
		}
		return f.word(width / 4)
	}
	message := vecs(16, 16, 64)
	m.load(m.data("even", everySecond(0)), free[0])
	m.load(m.data("odd", everySecond(1)), free[1])
	for i := range groupWords {
		m.load(at(in, 64*i), free[2+i])
		for half := range 2 {
			to := message[groupWords*half+i]
			m.VMOVDQA64(free[half].op(), to.op())
			m.VPERMI2D(at(in, 64*(groupWords+i)), free[2+i].op(), to.op())
		}
	}
	return func(w int) operand.Op { return message[w].op() }
}

// shuffleTwo takes two words of a and two of b, in this order, in lanes as wide as the register.
func (m *machine) shuffleTwo(order uint8, a, b, to vec) {
	if m.isa == sse41 {
		m.MOVO(a.op(), to.op())
		m.SHUFPS(operand.U8(order), b.op(), to.op())
		return
	}
	m.VSHUFPS(operand.U8(order), b.op(), a.op(), to.op())
	m.VPERMQ(operand.U8(0xD8), to.op(), to.op())
}

// everySecond is sixteen of the numbers from n on.
func everySecond(n uint32) (words []uint32) {
	for i := range uint32(16) {
		words = append(words, n+2*i)
	}
	return words
}

// columnUngroup converts a group to rows.
func (m *machine) columnUngroup(lanes int) {
	m.begin("ungroup"+itoa(lanes), "func(cvs, group *byte)", "writes the chaining values of a group one after the other.")
	cvs, group := m.param("cvs"), m.param("group")
	v := vecs(0, 16, 4*lanes)
	for i := range groupWords {
		m.load(at(group, 4*lanes*i), v[i])
	}
	m.storeTransposed(v[:8], v[8:], lanes, func(lane int) operand.Mem { return at(cvs, cvLen*lane) })
	m.endColumns()
}

func (m *machine) storeGroup(state []vec, out reg.Register) {
	for i := range groupWords {
		m.store(state[i], at(out, state[i].width*i))
	}
}

// broadcastKey sets the first words of the state to the key in every lane.
func (m *machine) broadcastKey(key reg.Register, state []vec) {
	for i := range 8 {
		m.spread(at(key, 4*i), state[i])
	}
}
