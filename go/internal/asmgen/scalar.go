package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Scalar form: the words of one state are in general registers, except words 8 to 11, which lie on
// the stack between two quarter rounds: each is read before its quarter round needs it, and written
// when the quarter round is nearly done. So the memory is not on the chain. AMD Zen 5 adds and
// rotates six words a cycle, each in one cycle, where vectors take two.

// scalarOne is rowOne in general registers.
func (m *machine) scalarOne() {
	m.begin("hash1Scalar", "func(out, rest, in *byte, length int, key *byte, counter uint64, all, first, last uint32)", oneDoc)
	s := scalar{machine: m, in: m.param("in"), third: m.AllocLocal(16)}
	before := m.AllocLocal(32)
	for i := range s.words {
		s.words[i] = m.GP32()
	}
	s.free = [2]reg.GPVirtual{m.GP32(), m.GP32()}
	key := m.param("key")
	for i := range 8 {
		m.MOVL(at(key, 4*i), s.words[i])
	}
	block, compress, done := m.label("block"), m.label("compress"), m.label("done")
	m.Label(string(block))
	length, size, flags := m.param("length"), m.GP64(), m.param32("first")
	m.ORL(m.param32("all"), flags)
	m.MOVQ(operand.U32(64), size)
	m.CMPQ(length, operand.U8(64))
	m.JA(compress)
	m.ORL(m.param32("last"), flags)
	m.CMPQ(length, operand.U8(64))
	m.JE(compress)
	m.MOVQ(length, size)
	m.padBlock(s.in, length, m.param("key"))
	m.Label(string(compress))
	for i := range 8 {
		m.MOVL(s.words[i], before.Offset(4*i))
	}
	counter := m.param("counter")
	m.MOVL(counter.As32(), s.words[12])
	m.SHRQ(operand.U8(32), counter)
	m.MOVL(counter.As32(), s.words[13])
	m.MOVL(size.As32(), s.words[14])
	m.MOVL(flags, s.words[15])
	s.rounds()
	for i := range 4 {
		m.XORL(s.third.Offset(4*i), s.words[i])
		m.XORL(s.words[12+i], s.words[4+i])
	}
	m.ADDQ(operand.U8(64), s.in)
	none, left := m.GP32(), m.param("length")
	m.XORL(none, none)
	m.Store(none, m.Param("first"))
	m.SUBQ(operand.U8(64), left)
	m.Store(left, m.Param("length"))
	m.JA(block)
	out := m.param("out")
	for i := range 8 {
		m.MOVL(s.words[i], at(out, 4*i))
	}
	rest := m.param("rest")
	m.TESTQ(rest, rest)
	m.JZ(done)
	for i := range 4 {
		word := m.GP32()
		m.MOVL(s.third.Offset(4*i), word)
		m.XORL(before.Offset(4*i), word)
		m.MOVL(word, at(rest, 4*i))
		m.XORL(before.Offset(16+4*i), s.words[12+i])
		m.MOVL(s.words[12+i], at(rest, 16+4*i))
	}
	m.Label(string(done))
	m.RET()
}

// scalar is the registers of the scalar form.
type scalar struct {
	*machine
	in    reg.GPVirtual
	words [16]reg.GPVirtual // those of words 8 to 11 are not used
	third operand.Mem       // words 8 to 11
	free  [2]reg.GPVirtual
}

// rounds is the seven rounds. Quarter rounds go two by two, because two registers are free.
func (s *scalar) rounds() {
	for r, order := range schedule {
		for half, quarters := range [2][4][4]int{columns, diagonals} {
			for i := 0; i < 4; i += 2 {
				var steps [2]code
				for j := range steps {
					k := 8*half + 2*(i+j)
					message := [2]int{order[k], order[k+1]}
					steps[j] = s.quarterRound(quarters[i+j], message, s.free[j], r == 0 && half == 0)
				}
				for k := range steps[0] {
					steps[0][k]()
					steps[1][k]()
				}
			}
		}
	}
}

// quarterRound is the instructions of a quarter round with these words of the message. In the first
// ones, word c is a constant.
func (s *scalar) quarterRound(words [4]int, message [2]int, c reg.Register, isFirst bool) code {
	a, b, d := s.words[words[0]], s.words[words[1]], s.words[words[3]]
	inMemory := s.third.Offset(4 * (words[2] - 8))
	steps := code{func() { s.MOVL(inMemory, c) }}
	if isFirst {
		steps = code{func() { s.MOVL(operand.U32(iv[words[2]-8]), c) }}
	}
	for i, turn := range [2][2]uint64{{16, 12}, {8, 7}} {
		word := at(s.in, 4*message[i])
		steps = append(steps,
			func() { s.ADDL(word, a) },
			func() { s.ADDL(b, a) },
			func() { s.XORL(a, d) },
			func() { s.RORL(operand.U8(turn[0]), d) },
			func() { s.ADDL(d, c) },
			func() { s.XORL(c, b) },
			func() { s.RORL(operand.U8(turn[1]), b) })
	}
	return append(steps, func() { s.MOVL(c, inMemory) })
}
