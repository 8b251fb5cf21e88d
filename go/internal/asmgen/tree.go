package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Groups: the chaining values of as many neighbours as there are lanes, in columns, as the rounds leave them. Two
// groups merge into one without a transpose, and only the last group is converted to rows.

// groupWords is the number of vectors in a group.
const groupWords = 8

// columnTree is the kernels that make, merge and convert groups.
func (m *machine) columnTree(lanes int) {
	m.columnSpan(lanes)
	m.columnMerge(lanes)
	m.columnUngroup(lanes)
}

// columnSpan makes groups of consecutive whole chunks.
func (m *machine) columnSpan(lanes int) {
	width := 4 * lanes
	m.begin("span"+itoa(lanes),
		"func(out, in *byte, counter uint64, key *byte, all, first, last uint32, groups, ahead int)",
		`hashes groups of whole chunks, the first of which has number
counter. Unless ahead is 0, the memory so many bytes ahead is fetched into the cache.`)
	out, in, counter, key := m.param("out"), m.param("in"), m.param("counter"), m.param("key")
	groups, ahead := m.param("groups"), m.param("ahead")
	f := m.frame()
	if m.isa == avx512VL {
		f.count = at(m.alignedLocal(2, width), 0)
	}
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
	m.load(f.count, state[12])
	m.load(f.count.Offset(width), state[13])
	m.VPBROADCASTD(m.blockLen, state[14].op())
	m.broadcastWord(flags.current, state[15])
	m.columnCompress(state, f, word)
	m.nextBlock(flags, blocks, in, loop)
	m.storeGroup(state, out)
	m.ADDQ(operand.U32(groupWords*width), out)
	m.ADDQ(operand.U32(1024*(lanes-1)), in)
	m.ADDQ(operand.U8(lanes), counter)
	m.DECQ(groups)
	m.JNZ(group)
	m.VZEROUPPER()
	m.RET()
}

// columnMerge makes one group of the parents of two.
func (m *machine) columnMerge(lanes int) {
	width := 4 * lanes
	m.begin("merge"+itoa(lanes), "func(out, in, key *byte, flags uint32, pairs int)",
		`makes groups of the parents of pairs of groups. out may be in.`)
	out, in, key := m.param("out"), m.param("in"), m.param("key")
	flags, pairs := m.param32("flags"), m.param("pairs")
	f := m.frame()
	state := vecs(0, 16, width)
	loop := m.label("pair")
	m.Label(string(loop))
	word := m.unzip(f, state, in)
	m.broadcastKey(key, state)
	m.xor(state[12], state[12].op())
	m.xor(state[13], state[13].op())
	m.VPBROADCASTD(m.blockLen, state[14].op())
	m.broadcastWord(flags, state[15])
	m.columnCompress(state, f, word)
	m.storeGroup(state, out)
	m.ADDQ(operand.U32(groupWords*width), out)
	m.ADDQ(operand.U32(2*groupWords*width), in)
	m.DECQ(pairs)
	m.JNZ(loop)
	m.VZEROUPPER()
	m.RET()
}

// unzip makes the message of the parents of two groups: the left children are the even lanes, the right ones the odd
// lanes. It returns the location of each word.
func (m *machine) unzip(f columnFrame, free []vec, in reg.Register) func(int) operand.Op {
	if m.isa == avx2 {
		for i := range groupWords {
			m.load(at(in, 32*i), free[0])
			m.load(at(in, 32*(groupWords+i)), free[1])
			for half, order := range []uint8{0x88, 0xDD} {
				m.VSHUFPS(operand.U8(order), free[1].op(), free[0].op(), free[2].op())
				m.VPERMQ(operand.U8(0xD8), free[2].op(), free[2].op())
				m.store(free[2], f.message.Offset(32*(groupWords*half+i)))
			}
		}
		return func(w int) operand.Op { return f.message.Offset(32 * w) }
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
	m.VZEROUPPER()
	m.RET()
}

func (m *machine) storeGroup(state []vec, out reg.Register) {
	for i := range groupWords {
		m.store(state[i], at(out, state[i].width*i))
	}
}

// broadcastKey sets the first words of the state to the key in every lane.
func (m *machine) broadcastKey(key reg.Register, state []vec) {
	for i := range 8 {
		m.VPBROADCASTD(at(key, 4*i), state[i].op())
	}
}
