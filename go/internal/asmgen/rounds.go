package main

import (
	"slices"

	"github.com/mmcloughlin/avo/operand"
)

// The seven rounds of the column form. Four streams of quarter rounds run side by side: each
// computes a column and a diagonal in turn.

// order is the order of the instructions of the four streams.
type order struct {
	diagonal [4]int // the diagonal that follows the column in each stream
	behind   [4]int // how far each stream is behind the first one, in quarters of a step
}

var (
	inStep = order{diagonal: [4]int{0, 1, 2, 3}}
	// In zmm registers, each stream is three quarters of a step behind the one before it: there are
	// fewer ports for rotations, so they must not come four at a time. The word b of a quarter round
	// is late, so each stream takes the diagonal whose b is from the stream behind it.
	staggered = order{[4]int{3, 0, 1, 2}, [4]int{0, 3, 6, 9}}
	// Two streams lead, so that some rotate while others add. They take the diagonals whose b is from
	// columns 1 and 0.
	pairs = order{[4]int{0, 3, 1, 2}, [4]int{0, 0, 4, 4}}
)

// orderOf is the order for registers of this width and a message in registers or in memory.
func orderOf(width int, inMemory bool) order {
	switch {
	case width < 64:
		return inStep
	case inMemory:
		return pairs
	}
	return staggered
}

// code is instructions to emit.
type code []func()

func (c code) emit() {
	for _, instruction := range c {
		instruction()
	}
}

// weave emits the pieces of other code, evenly distributed among the instructions of c.
func (c code) weave(pieces []code) {
	done := 0
	for i, instruction := range c {
		instruction()
		for due := (i + 1) * len(pieces) / len(c); done < due; done++ {
			pieces[done].emit()
		}
	}
}

// quarter is a quarter round: its words of the state and of the message.
type quarter struct{ words, message []int }

// quarters is the quarter rounds of each stream.
func (o order) quarters() (streams [4][]quarter) {
	for _, s := range schedule {
		for i := range 4 {
			streams[i] = append(streams[i], quarter{columns[i][:], s[2*i : 2*i+2]})
		}
		for i, d := range o.diagonal {
			streams[i] = append(streams[i], quarter{diagonals[d][:], s[8+2*d : 10+2*d]})
		}
	}
	return streams
}

// columnRounds is the seven rounds. The state is in registers 0 to 15, before and after. With
// sixteen registers, word 8 is in memory meanwhile, to leave its register free for rotations.
func (m *machine) columnRounds(v []vec, f columnFrame, word func(int) operand.Op) (all code) {
	_, inMemory := word(0).(operand.Mem)
	o := orderOf(v[0].width, inMemory)
	type timed struct {
		time int
		code
	}
	var steps []timed
	for i, stream := range o.quarters() {
		time := o.behind[i]
		for _, q := range stream {
			for _, instructions := range m.quarterRound(v, f, q, word) {
				steps = append(steps, timed{time, instructions})
				time += 4
			}
		}
	}
	slices.SortStableFunc(steps, func(a, b timed) int { return a.time - b.time })
	for _, timed := range steps {
		all = append(all, timed.code...)
	}
	if m.isa != avx512VL {
		all = slices.Insert(all, 0, func() { m.store(v[8], f.word8) })
		all = append(all, func() { m.load(f.word8, v[8]) })
	}
	return all
}

// quarterRound is the fourteen steps of a quarter round. Steps of several may be mixed in any order
// in which each word of the state is ready.
func (m *machine) quarterRound(v []vec, f columnFrame, q quarter, word func(int) operand.Op) (steps []code) {
	a, b, c, d := v[q.words[0]], v[q.words[1]], v[q.words[2]], v[q.words[3]]
	addD := code{func() { m.add(c, c, d.op()) }}
	xorC := code{func() { m.xor(b, c.op()) }}
	if m.isa != avx512VL && q.words[2] == 8 { // the sum is stored before a rotation needs its register
		addD, xorC = append(m.addWord8(c, d, f), xorC[0], func() { m.store(c, f.word8) }), nil
	}
	for i, turn := range [2][2]int{{16, 12}, {8, 7}} {
		message := word(q.message[i])
		steps = append(steps,
			code{func() { m.add(a, a, message) }},
			code{func() { m.add(a, a, b.op()) }},
			code{func() { m.xor(d, a.op()) }},
			m.ror(d, turn[0], v[8]),
			addD,
			xorC,
			m.ror(b, turn[1], v[8]))
	}
	return steps
}

// addWord8 sets c to the sum of word 8, which is in memory, and d.
func (m *machine) addWord8(c, d vec, f columnFrame) code {
	if m.isa == sse41 {
		return code{func() { m.load(f.word8, c) }, func() { m.add(c, c, d.op()) }}
	}
	return code{func() { m.add(c, d, f.word8) }}
}
