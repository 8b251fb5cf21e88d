// Package guts contains the compression function of BLAKE3, its kernels for each instruction set,
// and the tree over them. Everything above it (one-shot hashing, streaming, verified streaming) is
// bookkeeping.
//
// Words are kept as native uint32 values: a chaining value has the same meaning on every machine,
// and only the functions that read message bytes or write output bytes know that BLAKE3 is
// little-endian.
package guts

// Sizes in bytes (BLAKE3 paper, section 2.1).
const (
	ChunkLen = 1024
	BlockLen = 64
	KeyLen   = 32
	OutLen   = 32
)

// Domain flags (BLAKE3 paper, table 3).
const (
	ChunkStart        = 1 << 0
	ChunkEnd          = 1 << 1
	ParentFlag        = 1 << 2
	Root              = 1 << 3
	KeyedHash         = 1 << 4
	DeriveKeyContext  = 1 << 5
	DeriveKeyMaterial = 1 << 6
)

// MaxLanes is the number of inputs that the widest kernel takes at once. A slice of chaining values
// for Chunks or Parents must have this many spare elements at its end: a kernel with idle lanes
// writes them too.
const MaxLanes = 16

// BatchChunks is the number of chunks that are hashed before their chaining values are merged:
// enough that parents fill the widest kernel, few enough to stay in the first-level cache.
const BatchChunks = 256

// CV is a chaining value: eight words.
type CV [8]uint32

// Group holds the chaining values of neighbors as the column kernels leave them: word 0 of each,
// then word 1 of each, and so on. A kernel of fewer lanes than MaxLanes has smaller groups.
type Group [8 * MaxLanes]uint32

// IV is the initial chaining value (BLAKE3 paper, table 1), the key of the plain hash.
var IV = CV{
	0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
	0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
}

// Flags are the domain flags of one run of blocks.
type Flags struct {
	All   uint32 // on every block
	First uint32 // on the first block as well
	Last  uint32 // on the last block as well
}

// ChunkFlags are the flags of a whole chunk in the mode given; last is added to its last block.
func ChunkFlags(mode, last uint32) Flags {
	return Flags{All: mode, First: ChunkStart, Last: ChunkEnd | last}
}
