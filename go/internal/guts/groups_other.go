//go:build purego || !amd64

package guts

// Reduce hashes in, whose first chunk has number counter, and writes the chaining values of its
// chunks. It returns how many there are, and 0: only kernels that work on groups can do more. cvs
// has MaxLanes spare elements.
func Reduce(cvs []CV, _ []Group, in []byte, key *CV, counter uint64, flags uint32, _ int) (n, level int) {
	return Chunks(cvs, in, key, counter, flags), 0
}
