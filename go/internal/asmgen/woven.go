package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Woven kernels, for AVX-512: while the vector units run the rounds of a block, integer
// instructions among them write the message of the next block to memory, transposed. Integer units,
// and those for loads and stores, are idle otherwise, and shuffles would need the ports of the
// rounds.

// wovenFrame is the stack frame of a woven kernel.
type wovenFrame struct {
	columnFrame
	this, next reg.GPVirtual // the messages of this block and of the next one
}

// wovenFrame reserves the frame. It is too large for a function that may not grow the stack.
func (m *machine) wovenFrame(lanes int) (w wovenFrame) {
	width := 4 * lanes
	m.Attributes(0)
	base := m.alignedLocal(34, width)
	w.count = at(base, 32*width)
	w.this, w.next = m.GP64(), m.GP64()
	m.MOVQ(base, w.this)
	m.LEAQ(at(base, 16*width), w.next)
	w.message = at(w.this, 0)
	return w
}

// firstMessage transposes the first block of every lane, by shuffles.
func (m *machine) firstMessage(w wovenFrame, free []vec, lanes int, from func(lane int) operand.Mem) {
	word := m.loadMessage(w.columnFrame, free, lanes, from)
	for i := range 16 {
		m.VMOVDQU32(word(i), w.word(lanes)(i))
	}
}

// wovenCompress is columnCompress, with code among the rounds that makes the next message. from
// gives the address of a lane's next block.
func (m *machine) wovenCompress(state []vec, w wovenFrame, lanes int, from func(lane int) operand.Mem) {
	m.loadIV(state)
	m.columnRounds(state, w.columnFrame, w.word(lanes)).weave(m.transposeNext(w, lanes, from))
	m.foldHalves(state)
	m.XCHGQ(w.this, w.next)
}

// lanesInTurn is how many lanes of the next message take turns, so that whole vectors of it are
// ready early.
const lanesInTurn = 4

// transposeNext is the code that writes the next message, in pieces: eight bytes of a lane are
// loaded, and stored as two words.
func (m *machine) transposeNext(w wovenFrame, lanes int, from func(lane int) operand.Mem) (pieces []code) {
	words := m.GP64()
	store := func(word, lane int) func() {
		return func() { m.MOVL(words.As32(), at(w.next, 4*(lanes*word+lane))) }
	}
	for first := 0; first < lanes; first += lanesInTurn {
		var block [lanesInTurn]operand.Mem
		for pair := range 8 {
			for i := range lanesInTurn {
				var piece code
				if pair == 0 {
					piece = code{func() { block[i] = from(first + i) }}
				}
				pieces = append(pieces, append(piece,
					func() { m.MOVQ(block[i].Offset(8*pair), words) },
					store(2*pair, first+i),
					func() { m.SHRQ(operand.U8(32), words) },
					store(2*pair+1, first+i)))
			}
		}
	}
	return pieces
}

// wovenStep is columnStep for several blocks.
func (m *machine) wovenStep(lanes int) {
	m.begin("stepWoven"+itoa(lanes), stepSignature, stepDoc)
	w := m.wovenFrame(lanes)
	s := m.beginStep(lanes)
	block := func(lane int) operand.Mem { return m.blockOf(s.ptr, lane, s.off) }
	m.firstMessage(w, s.state[8:], lanes, block)
	m.Label(string(s.loop))
	after := m.GP64()
	m.LEAQ(at(s.off, 64), after)
	m.CMPQ(s.blocks, operand.U8(1))
	m.CMOVQNE(after, s.off) // the last block is read twice: nothing may be read behind it
	m.rowD(s)
	m.wovenCompress(s.state, w, lanes, func(lane int) operand.Mem {
		next := block(lane)
		m.PREFETCHT0(next.Offset(2 * 64))
		return next
	})
	m.endStep(s)
}

// wovenSpan makes groups of consecutive whole chunks.
func (m *machine) wovenSpan(lanes int) {
	m.begin("span"+itoa(lanes), spanSignature, `hashes groups of whole chunks, the first of which has number
counter. It fetches the memory so many bytes ahead of the next block into the cache.`)
	out, in, counter, key := m.param("out"), m.param("in"), m.param("counter"), m.param("key")
	groups, ahead := m.param("groups"), m.param("ahead")
	w := m.wovenFrame(lanes)
	width := 4 * lanes
	state := vecs(0, 16, width)
	group, loop, woven := m.label("group"), m.label("block"), m.label("woven")
	m.firstMessage(w, state[8:], lanes, func(lane int) operand.Mem { return at(in, 1024*lane) })
	m.Label(string(group))
	m.countLanes(counter, state)
	m.store(state[12], w.count)
	m.store(state[13], w.count.Offset(width))
	m.broadcastKey(key, state)
	blocks := m.GP64()
	m.MOVQ(operand.U32(16), blocks)
	flags := m.beginFlags(blocks)
	m.Label(string(loop))
	m.nextOfSpan(in, blocks, groups, lanes, woven)
	m.Label(string(woven))
	m.spanRow(w.columnFrame, flags, state)
	m.wovenCompress(state, w, lanes, func(lane int) operand.Mem {
		m.PREFETCHT0(operand.Mem{Base: in, Index: ahead, Scale: 1, Disp: 1024 * lane})
		return at(in, 1024*lane)
	})
	m.nextFlags(flags, blocks)
	m.DECQ(blocks)
	m.JNZ(loop)
	m.endGroup(out, counter, groups, state, group)
}

// nextOfSpan moves in to the next block, and jumps to woven unless it is in the next group. The
// last block of the last group is read twice: nothing may be read behind it.
func (m *machine) nextOfSpan(in, blocks, groups reg.GPVirtual, lanes int, woven operand.LabelRef) {
	last := m.GP64()
	m.MOVQ(in, last)
	m.ADDQ(operand.U8(64), in)
	m.CMPQ(blocks, operand.U8(1))
	m.JNE(woven)
	m.ADDQ(operand.U32(1024*(lanes-1)), in)
	m.CMPQ(groups, operand.U8(1))
	m.CMOVQEQ(last, in)
}
