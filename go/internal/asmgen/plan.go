package main

import (
	"slices"

	"github.com/mmcloughlin/avo/operand"
)

// stepKind says what a step of the plan does.
type stepKind int

const (
	shuffle stepKind = iota // vector to = two words of a, then two of b, by the order
	half                    // half round number order with message row to
)

type planStep struct {
	kind      stepKind
	to, order int
	a, b      int
}

// plan makes all 28 message rows of a block out of its four quarters, vectors 0 to 3, by 38 in-lane
// shuffles of one cycle each. A search over the pairs of words to bring together found it.
// Two-source permutations would be fewer, but their three cycles collide with the chain of the
// rounds. Each shuffle comes shortly before its use.
var plan = []planStep{
	{shuffle, 4, 0x88, 0, 1}, {shuffle, 5, 0xDD, 0, 1}, {shuffle, 6, 0xC6, 2, 3},
	{shuffle, 7, 0xC6, 3, 2}, {shuffle, 8, 0x88, 7, 6}, {shuffle, 9, 0x77, 6, 7},
	{half, 4, 0, 0, 0}, {shuffle, 10, 0x3E, 0, 1}, {shuffle, 11, 0x62, 8, 1},
	{half, 5, 1, 0, 0}, {shuffle, 12, 0x7C, 2, 11}, {half, 8, 2, 0, 0},
	{shuffle, 13, 0x34, 0, 9}, {shuffle, 14, 0x82, 11, 13}, {half, 9, 3, 0, 0},
	{shuffle, 15, 0x67, 13, 6}, {half, 10, 0, 0, 0}, {shuffle, 16, 0xC8, 5, 13},
	{shuffle, 17, 0x4D, 4, 8}, {half, 14, 1, 0, 0}, {shuffle, 18, 0xD7, 17, 2},
	{shuffle, 19, 0xE1, 3, 10}, {half, 15, 2, 0, 0}, {shuffle, 20, 0x87, 19, 17},
	{shuffle, 21, 0x94, 6, 10}, {half, 12, 3, 0, 0}, {shuffle, 22, 0x82, 21, 19},
	{half, 22, 0, 0, 0}, {shuffle, 23, 0x68, 6, 3}, {shuffle, 24, 0xC3, 4, 17},
	{half, 20, 1, 0, 0}, {shuffle, 25, 0x7D, 10, 13}, {half, 18, 2, 0, 0},
	{shuffle, 26, 0x87, 21, 25}, {half, 16, 3, 0, 0}, {shuffle, 27, 0x97, 25, 12},
	{half, 23, 0, 0, 0}, {shuffle, 28, 0xB6, 6, 3}, {half, 26, 1, 0, 0},
	{shuffle, 29, 0x2D, 7, 2}, {half, 27, 2, 0, 0}, {shuffle, 30, 0x9E, 1, 16},
	{half, 24, 3, 0, 0}, {shuffle, 31, 0x76, 4, 0}, {half, 28, 0, 0, 0},
	{shuffle, 32, 0x6D, 11, 15}, {shuffle, 33, 0x83, 19, 0}, {half, 29, 1, 0, 0},
	{shuffle, 34, 0x87, 5, 11}, {half, 30, 2, 0, 0}, {shuffle, 35, 0xCE, 25, 18},
	{half, 31, 3, 0, 0}, {shuffle, 36, 0x2D, 2, 35}, {half, 36, 0, 0, 0},
	{shuffle, 37, 0x99, 12, 35}, {shuffle, 38, 0x63, 13, 18}, {half, 32, 1, 0, 0},
	{shuffle, 39, 0xD7, 14, 19}, {half, 33, 2, 0, 0}, {shuffle, 40, 0x8E, 19, 32},
	{half, 34, 3, 0, 0}, {shuffle, 41, 0xE8, 40, 0}, {half, 37, 0, 0, 0},
	{half, 38, 1, 0, 0}, {half, 41, 2, 0, 0}, {half, 39, 3, 0, 0},
}

// planSlots is the number of stack slots for vectors of the plan, if there are only sixteen
// registers.
const planSlots = 20

// planner keeps as many vectors of the plan as possible in its registers, and the others on the
// stack.
type planner struct {
	*machine
	pool  []vec
	holds map[int]vec // vector of the plan: its register
	slots map[int]int // vector of the plan: its slot on the stack, if it has been there
	freed []int       // slots to use again
	top   int         // slots in use so far
	stack operand.Mem
	width int
}

// plannedRounds is the seven rounds of one or two sets of rows side by side, where load reads a
// quarter of the message of a set into a register. Registers from number free on are free.
func (m *machine) plannedRounds(sets []rows, free int, load func(set, quarter int, to vec)) {
	registers := 16
	if m.isa == avx512VL {
		registers = 32
	}
	width := sets[0].a.width
	count := (registers - free) / len(sets)
	planners := make([]*planner, len(sets))
	for i := range sets {
		planners[i] = &planner{machine: m, width: width, holds: map[int]vec{}, slots: map[int]int{}}
		planners[i].pool = vecs(free+i*count, count, width)
	}
	if m.isa != avx512VL {
		m.planStack(planners)
	}
	for i, p := range planners {
		for q := range 4 {
			v := p.take(0)
			load(i, q, v)
			p.holds[q] = v
		}
	}
	for step, s := range plan {
		for i, p := range planners {
			if s.kind == half {
				m.halfRound(sets[i], s.order, p.operand(s.to))
			} else {
				p.shuffle(s, step)
			}
			p.release(step)
		}
	}
}

// planStack reserves stack for the vectors without a register, aligned for SSE operands.
func (m *machine) planStack(planners []*planner) {
	width := planners[0].width
	base := m.GP64()
	m.LEAQ(m.AllocLocal((len(planners)*planSlots+1)*width).Offset(width-1), base)
	m.ANDQ(operand.I8(-width), base)
	for i, p := range planners {
		p.stack = at(base, i*planSlots*width)
	}
}

// nextUse is the first step from number i on that reads vector v, or the length of the plan.
func nextUse(v, i int) int {
	for ; i < len(plan); i++ {
		s := plan[i]
		if s.kind == half && s.to == v || s.kind == shuffle && (s.a == v || s.b == v) {
			return i
		}
	}
	return i
}

func (p *planner) slot(v int) operand.Mem { return p.stack.Offset(p.slots[v] * p.width) }

// save gives vector v a slot on the stack.
func (p *planner) save(v int) {
	if _, ok := p.slots[v]; ok {
		return
	}
	if n := len(p.freed); n > 0 {
		p.slots[v] = p.freed[n-1]
		p.freed = p.freed[:n-1]
	} else {
		p.slots[v] = p.top
		p.top++
	}
	if p.top > planSlots {
		panic("asmgen: the plan needs more slots on the stack")
	}
	p.store(p.holds[v], p.slot(v))
}

// take returns a free register. If there is none, the vector whose next use is farthest goes to the
// stack.
func (p *planner) take(step int, keep ...int) vec {
	if len(p.pool) > 0 {
		v := p.pool[0]
		p.pool = p.pool[1:]
		return v
	}
	far, when := -1, -1
	for v := range 4 + len(plan) {
		if _, ok := p.holds[v]; !ok || slices.Contains(keep, v) {
			continue
		}
		if n := nextUse(v, step); n > when {
			far, when = v, n
		}
	}
	p.save(far)
	v := p.holds[far]
	delete(p.holds, far)
	return v
}

// operand is the location of vector v.
func (p *planner) operand(v int) operand.Op {
	if r, ok := p.holds[v]; ok {
		return r.op()
	}
	return p.slot(v)
}

// shuffle emits a shuffle of the plan, step number i.
func (p *planner) shuffle(s planStep, i int) {
	to := p.take(i, s.a, s.b)
	if p.isa == sse41 {
		if r, ok := p.holds[s.a]; ok {
			p.MOVO(r.op(), to.op())
		} else {
			p.load(p.slot(s.a), to)
		}
		p.SHUFPS(operand.U8(s.order), p.operand(s.b), to.op())
	} else {
		if _, ok := p.holds[s.a]; !ok {
			p.load(p.slot(s.a), to)
			p.VSHUFPS(operand.U8(s.order), p.operand(s.b), to.op(), to.op())
		} else {
			p.VSHUFPS(operand.U8(s.order), p.operand(s.b), p.holds[s.a].op(), to.op())
		}
	}
	p.holds[s.to] = to
}

// release frees the registers and slots of the vectors that no step after number i reads.
func (p *planner) release(i int) {
	for v := range 4 + len(plan) {
		if nextUse(v, i+1) < len(plan) {
			continue
		}
		if r, ok := p.holds[v]; ok {
			p.pool = append(p.pool, r)
			delete(p.holds, v)
		}
		if slot, ok := p.slots[v]; ok {
			p.freed = append(p.freed, slot)
			delete(p.slots, v)
		}
	}
}
