//go:build !purego

package guts

//go:noescape
func hash1SSE41(out, rest *CV, in *byte, length int, tail *byte, key *CV, counter uint64, all, first, last uint32)

//go:noescape
func step4SSE41(cvs *CV, ptr *pointers, d *rowD, blocks int, key *CV, all, first, last uint32)

//go:noescape
func span4SSE41(out *Group, in *byte, counter uint64, key *CV, all, first, last uint32, groups, ahead int)

//go:noescape
func merge4SSE41(out, in *Group, key *CV, flags uint32, pairs int)

//go:noescape
func ungroup4SSE41(cvs *CV, group *Group)

//go:noescape
func root4SSE41(out *byte, node *Node, counter uint64, flags uint32, groups int)
