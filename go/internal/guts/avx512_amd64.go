//go:build !purego

package guts

//go:noescape
func hash1AVX512(out, rest *CV, in *byte, length int, key *CV, counter uint64, all, first, last uint32)

//go:noescape
func hash1ShiftsAVX512(out, rest *CV, in *byte, length int, key *CV, counter uint64, all, first, last uint32)

//go:noescape
func hash1ScalarAVX512(out, rest *CV, in *byte, length int, key *CV, counter uint64, all, first, last uint32)

//go:noescape
func step2AVX512(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func step2ShiftsAVX512(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func step4AVX512(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func step8AVX512(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func step16AVX512(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func stepWoven16AVX512(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func span16AVX512(out *Group, in *byte, counter uint64, key *CV, all, first, last uint32, groups, ahead int)

//go:noescape
func merge16AVX512(out, in *Group, key *CV, flags uint32, pairs int)

//go:noescape
func ungroup16AVX512(cvs *CV, group *Group)

//go:noescape
func root16AVX512(out *byte, node *Node, counter uint64, flags uint32, groups int)

//go:noescape
func cpuid(leaf uint32) (a, b, c, d uint32)

//go:noescape
func parents2AVX512(out, in, key *CV, flags uint32)

//go:noescape
func parents2ShiftsAVX512(out, in, key *CV, flags uint32)

//go:noescape
func parents4AVX512(out, in, key *CV, flags uint32)
