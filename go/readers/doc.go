// Package readers shows how to read in Go what bulla writes: keys, signatures, envelopes and wrapped keys. Its tests read
// copies of the vectors of spec/vectors, with implementations that share no code with those that wrote them, nor with the rest of this
// repository.
package readers
