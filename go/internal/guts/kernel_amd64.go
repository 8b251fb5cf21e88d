//go:build !purego

package guts

import (
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

// group is how many of n inputs to take next, and how many lanes the kernel for them has: 1 means [one]. More than half
// of the lanes are in use.
func group(n int) (inputs, width int) {
	switch active {
	case AVX512:
		switch {
		case n > 8:
			return min(n, 16), 16
		case n > 4:
			return n, 8
		case n > 2:
			return n, 4
		}
		return n, n
	case AVX2:
		switch {
		case n > 4:
			return min(n, 8), 8
		case n > 1:
			return 2, 2
		}
	}
	return 1, 1
}

// isColumn says whether the kernel of that many lanes is in column form.
func isColumn(width int) bool { return width >= 8 }

// rootWidth is the number of output blocks that rootBlocks makes at once, 1 if there is no such kernel.
func rootWidth() int {
	switch active {
	case AVX512:
		return 16
	case AVX2:
		return 8
	}
	return 1
}

// one is One where the kernel is not the portable one.
func one(out *CV, in []byte, key *CV, counter uint64, f Flags) {
	if active == AVX512 {
		hash1AVX512(out, unsafe.SliceData(in), len(in), key, counter, f.All, f.First, f.Last)
		return
	}
	var tail [BlockLen]byte
	if r := len(in) % BlockLen; r > 0 {
		copy(tail[:], in[len(in)-r:])
	}
	if active == AVX2 {
		hash1AVX2(out, unsafe.SliceData(in), len(in), &tail[0], key, counter, f.All, f.First, f.Last)
	} else {
		hash1SSE41(out, unsafe.SliceData(in), len(in), &tail[0], key, counter, f.All, f.First, f.Last)
	}
}

// step absorbs the next blocks of all lanes, where first and last are added to the flags of the first and the last of them.
// With a key the inputs begin there, otherwise with cvs; cvs gets as many values as there are lanes.
func step(width int, cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, first, last uint32) {
	if active == AVX2 {
		if width == 8 {
			step8AVX2(cvs, ptr, d, blocks, key, first, last)
		} else {
			step2AVX2(cvs, ptr, d, blocks, key, first, last)
		}
		return
	}
	switch width {
	case 16:
		step16AVX512(cvs, ptr, d, blocks, key, first, last)
	case 8:
		step8AVX512(cvs, ptr, d, blocks, key, first, last)
	case 4:
		step4AVX512(cvs, ptr, d, blocks, key, first, last)
	default:
		step2AVX512(cvs, ptr, d, blocks, key, first, last)
	}
}

// rootBlocks writes groups of rootWidth blocks of root output.
func rootBlocks(out *byte, n *Node, counter uint64, flags uint32, groups int) {
	if active == AVX512 {
		root16AVX512(out, n, counter, flags, groups)
	} else {
		root8AVX2(out, n, counter, flags, groups)
	}
}
