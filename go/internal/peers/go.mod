// A module of tests, so that the library does not require the packages that it is compared with. It runs in a checkout only: nobody
// fetches it.
module github.com/bulla-dev/bulla/go/internal/peers

go 1.24.0

require (
	github.com/bulla-dev/bulla/go v0.0.0
	lukechampine.com/blake3 v1.4.1
)

require (
	github.com/klauspost/cpuid/v2 v2.0.9 // indirect
	golang.org/x/sys v0.41.0 // indirect
)

replace github.com/bulla-dev/bulla/go => ../..
