// A module of its own, so that the library does not require what its generator needs. It runs in a checkout only: nobody fetches it.
module github.com/bulla-dev/bulla/go/internal/asmgen

go 1.26

require github.com/mmcloughlin/avo v0.5.0

require (
	golang.org/x/mod v0.6.0 // indirect
	golang.org/x/sys v0.1.0 // indirect
	golang.org/x/tools v0.2.0 // indirect
)
