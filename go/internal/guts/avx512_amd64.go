//go:build !purego

package guts

//go:noescape
func hash1AVX512(out, rest *CV, in *byte, length int, key *CV, counter uint64, all, first, last uint32)

//go:noescape
func step2AVX512(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func step4AVX512(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func step8AVX512(cvs *CV, ptr *pointers, d *rowD, blocks, groups, ahead int, key *CV, all, first, last uint32)

//go:noescape
func step16AVX512(cvs *CV, ptr *pointers, d *rowD, blocks, groups, ahead int, key *CV, all, first, last uint32)

//go:noescape
func root16AVX512(out *byte, node *Node, counter uint64, flags uint32, groups int)
