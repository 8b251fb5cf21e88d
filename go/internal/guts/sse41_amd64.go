//go:build !purego

package guts

//go:noescape
func hash1SSE41(out, rest *CV, in *byte, length int, tail *byte, key *CV, counter uint64, all, first, last uint32)
