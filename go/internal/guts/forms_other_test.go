//go:build purego || !amd64

package guts

func otherForms(Kernel) []func() (restore func()) { return nil }
