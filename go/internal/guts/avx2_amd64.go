//go:build !purego

package guts

//go:noescape
func hash1AVX2(out, rest *CV, in *byte, length int, tail *byte, key *CV, counter uint64, all, first, last uint32)

//go:noescape
func step2AVX2(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func step4AVX2(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func step8AVX2(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func span8AVX2(out *Group, in *byte, counter uint64, key *CV, all, first, last uint32, groups, ahead int)

//go:noescape
func merge8AVX2(out, in *Group, key *CV, flags uint32, pairs int)

//go:noescape
func ungroup8AVX2(cvs *CV, group *Group)

//go:noescape
func root8AVX2(out *byte, node *Node, counter uint64, flags uint32, groups int)

//go:noescape
func parents2AVX2(out, in, key *CV, flags uint32)

//go:noescape
func parents4AVX2(out, in, key *CV, flags uint32)
