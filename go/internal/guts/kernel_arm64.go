//go:build !purego

package guts

import "golang.org/x/sys/cpu"

// Available lists the kernels of this machine, the best first.
func Available() []Kernel {
	if cpu.ARM64.HasASIMD {
		return []Kernel{NEON, Portable}
	}
	return []Kernel{Portable}
}

// group is how many of n inputs to take next, and how many lanes the kernel for them has: 1 means
// one. More than half of the lanes are in use.
func group(n int) (inputs, width int) {
	if n > 2 {
		return min(n, 4), 4
	}
	return 1, 1
}

// oneByOne reports whether a chunk and an input of that many bytes after it are quicker one by one
// than side by side; group takes them so in any case.
func oneByOne(int) bool { return false }

// isColumn says whether the kernel of that many lanes is in column form.
func isColumn(int) bool { return true }

// manyLanes is the number of lanes of the widest kernel.
func manyLanes() int { return 4 }

// rootWidth is the number of output blocks that rootBlocks makes at once.
func rootWidth() int { return 4 }

// one absorbs a message of at most ChunkLen bytes. If rest is not nil, the message is one block,
// and the other half of its output goes there. A single input gains nothing from NEON: the scalar
// unit rotates words for free.
func one(out, rest *CV, in []byte, key *CV, counter uint64, f Flags) {
	if rest == nil {
		onePortable(out, in, key, counter, f)
		return
	}
	var v, m [16]uint32
	loadBlock(&m, in)
	compress(&v, key, &m, counter, uint32(len(in)), f.All|f.First|f.Last)
	*out, *rest = CV(v[:8]), CV(v[8:])
}

// step absorbs this many blocks of its inputs. If key is not nil, the inputs begin with it,
// otherwise with cvs. cvs gets as many values as there are lanes.
func step(_ int, cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, f Flags) {
	step4NEON(cvs, ptr, d, blocks, key, f.All, f.First, f.Last)
}

// parentsOf reports that there is no kernel for parents alone.
func parentsOf(int, *CV, *CV, *CV, uint32) bool { return false }

// rootBlocks writes groups of rootWidth blocks of root output.
func rootBlocks(out *byte, n *Node, counter uint64, groups int) {
	root4NEON(out, n, counter, n.Flags|Root, groups)
}

//go:noescape
func step4NEON(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func root4NEON(out *byte, node *Node, counter uint64, flags uint32, groups int)
