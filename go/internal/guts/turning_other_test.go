//go:build purego || !amd64

package guts

func otherTurning(Kernel) (restore func(), ok bool) { return nil, false }
