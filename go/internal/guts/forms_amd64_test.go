//go:build !purego

package guts

// otherForms choose the forms of a kernel that this machine does not choose by itself.
func otherForms(k Kernel) (all []func() (restore func())) {
	for f := byRotation; k == AVX512 && f <= inWords; f++ {
		if own := best; f != own {
			all = append(all, func() func() {
				best = f
				return func() { best = own }
			})
		}
	}
	return all
}
