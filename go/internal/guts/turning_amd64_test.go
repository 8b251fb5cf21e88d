//go:build !purego

package guts

// otherTurning chooses the form of a kernel that this machine does not choose by itself.
func otherTurning(k Kernel) (restore func(), ok bool) {
	if k != AVX512 {
		return nil, false
	}
	turnsByShifts = !turnsByShifts
	return func() { turnsByShifts = !turnsByShifts }, true
}
