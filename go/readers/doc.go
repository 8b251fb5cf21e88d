// Package readers shows how to read bulla's keys, signatures, envelopes and wrapped keys in Go. Its
// tests read copies of the vectors of spec/vectors. Its implementations share no code with those
// that wrote the vectors, or with the rest of this repository.
package readers
