//go:build !purego

package guts

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Available lists the kernels of this machine, the best first.
func Available() []Kernel {
	var all []Kernel
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasBMI2
	if avx2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
		all = append(all, AVX512)
	}
	if avx2 {
		all = append(all, AVX2)
	}
	if cpu.X86.HasSSE41 && cpu.X86.HasSSSE3 {
		all = append(all, SSE41)
	}
	return append(all, Portable)
}

// form is how a kernel for one or two inputs works. Its speed is limited by latency, so what is
// quickest depends on the processor.
type form uint8

const (
	// byRotation is vectors, and one instruction that rotates words.
	byRotation form = iota
	// byShifts is vectors whose words are shifted both ways at once: on AMD Zen 4, a rotation takes
	// two cycles.
	byShifts
	// inWords is general registers for one input, and rotations for two: on AMD Zen 5, each
	// instruction on vectors takes two cycles.
	inWords
)

// best is the form of this machine.
var best = func() form {
	_, b, c, d := cpuid(0)
	name := binary.LittleEndian.AppendUint32(nil, b)
	name = binary.LittleEndian.AppendUint32(name, d)
	name = binary.LittleEndian.AppendUint32(name, c)
	version, _, _, _ := cpuid(1)
	family := version>>8&15 + version>>20&255
	switch {
	case string(name) == "AuthenticAMD" && family == 0x19:
		return byShifts
	case string(name) == "AuthenticAMD" && family == 0x1A:
		return inWords
	}
	return byRotation
}()

// group is how many of n inputs to take next, and how many lanes the kernel for them has: 1 means
// one. More than half of the lanes are in use.
func group(n int) (inputs, width int) {
	switch {
	case n == 1 || active == SSE41 && n == 2:
		return 1, 1
	case active == SSE41:
		return min(n, 4), 4
	case n == 2:
		return 2, 2
	case n <= 4:
		return n, 4
	case n <= 8 || active == AVX2:
		return min(n, 8), 8
	default:
		return min(n, 16), 16
	}
}

// oneByOne reports whether a chunk and an input of that many bytes after it are quicker one by one
// than side by side.
func oneByOne(second int) bool { return active == AVX512 && best == inWords && second <= 640 }

// isColumn says whether the kernel of that many lanes is in column form.
func isColumn(width int) bool { return width >= 8 || active == SSE41 }

// manyLanes is the number of lanes of the widest kernel.
func manyLanes() int {
	switch active {
	case AVX512:
		return 16
	case AVX2:
		return 8
	case SSE41:
		return 4
	}
	return 1
}

// rootWidth is the number of output blocks that rootBlocks makes at once, 1 if there is no such
// kernel.
func rootWidth() int { return manyLanes() }

// one absorbs a message of at most ChunkLen bytes. If rest is not nil, the other half of the output
// of its last block goes there.
func one(out, rest *CV, in []byte, key *CV, counter uint64, f Flags) {
	switch {
	case active != AVX512:
		onePadded(out, rest, in, key, counter, f)
	case best == inWords:
		hash1ScalarAVX512(out, rest, unsafe.SliceData(in), len(in), key, counter, f.All, f.First, f.Last)
	case best == byShifts:
		hash1ShiftsAVX512(out, rest, unsafe.SliceData(in), len(in), key, counter, f.All, f.First, f.Last)
	default:
		hash1AVX512(out, rest, unsafe.SliceData(in), len(in), key, counter, f.All, f.First, f.Last)
	}
}

// onePadded is one for kernels that cannot read an incomplete block: they get a zero-padded copy of
// an incomplete last block.
func onePadded(out, rest *CV, in []byte, key *CV, counter uint64, f Flags) {
	var last [BlockLen]byte
	if r := len(in) % BlockLen; r > 0 {
		copy(last[:], in[len(in)-r:])
	}
	if active == AVX2 {
		hash1AVX2(out, rest, unsafe.SliceData(in), len(in), &last[0], key, counter, f.All, f.First, f.Last)
		return
	}
	hash1SSE41(out, rest, unsafe.SliceData(in), len(in), &last[0], key, counter, f.All, f.First, f.Last)
}

// wovenFrom is the number of blocks from which it pays to transpose the message of the next block
// during the rounds of this one.
const wovenFrom = 4

// step absorbs this many blocks of its inputs. If key is not nil, the inputs begin with it,
// otherwise with cvs. cvs gets as many values as there are lanes.
func step(width int, cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, f Flags) {
	switch {
	case active == SSE41:
		step4SSE41(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	case active == AVX2 && width == 8:
		step8AVX2(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	case active == AVX2 && width == 4:
		step4AVX2(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	case active == AVX2:
		step2AVX2(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	case width == 16 && blocks >= wovenFrom:
		stepWoven16AVX512(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	case width == 16:
		step16AVX512(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	case width == 8:
		step8AVX512(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	case width == 4:
		step4AVX512(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	case best == byShifts:
		step2ShiftsAVX512(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	default:
		step2AVX512(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
	}
}

// parentsOf writes the parents of at most width pairs of consecutive chaining values, and reports
// whether there is a kernel for that.
func parentsOf(width int, out, in, key *CV, flags uint32) bool {
	switch {
	case active == SSE41:
		return false
	case width == 2 && active == AVX2:
		parents2AVX2(out, in, key, flags)
	case width == 2 && best == byShifts:
		parents2ShiftsAVX512(out, in, key, flags)
	case width == 2:
		parents2AVX512(out, in, key, flags)
	case width == 4 && active == AVX2:
		parents4AVX2(out, in, key, flags)
	case width == 4:
		parents4AVX512(out, in, key, flags)
	default:
		return false
	}
	return true
}

// groupLanes is the number of lanes of the kernels that work on groups, 0 if there are none.
func groupLanes() int {
	if n := manyLanes(); n > 1 {
		return n
	}
	return 0
}

// span hashes groups of whole chunks.
func span(out *Group, in *byte, counter uint64, key *CV, f Flags, groups, ahead int) {
	switch active {
	case AVX512:
		span16AVX512(out, in, counter, key, f.All, f.First, f.Last, groups, max(ahead, 2*BlockLen))
	case AVX2:
		span8AVX2(out, in, counter, key, f.All, f.First, f.Last, groups, ahead)
	default:
		span4SSE41(out, in, counter, key, f.All, f.First, f.Last, groups, ahead)
	}
}

// merge makes groups of the parents of pairs of groups.
func merge(out, in *Group, key *CV, flags uint32, pairs int) {
	switch active {
	case AVX512:
		merge16AVX512(out, in, key, flags, pairs)
	case AVX2:
		merge8AVX2(out, in, key, flags, pairs)
	default:
		merge4SSE41(out, in, key, flags, pairs)
	}
}

// ungroup writes the chaining values of a group one after the other.
func ungroup(cvs *CV, group *Group) {
	switch active {
	case AVX512:
		ungroup16AVX512(cvs, group)
	case AVX2:
		ungroup8AVX2(cvs, group)
	default:
		ungroup4SSE41(cvs, group)
	}
}

// rootBlocks writes groups of rootWidth blocks of root output.
func rootBlocks(out *byte, n *Node, counter uint64, groups int) {
	switch active {
	case AVX512:
		root16AVX512(out, n, counter, n.Flags|Root, groups)
	case AVX2:
		root8AVX2(out, n, counter, n.Flags|Root, groups)
	default:
		root4SSE41(out, n, counter, n.Flags|Root, groups)
	}
}
