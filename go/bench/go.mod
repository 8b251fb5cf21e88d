// Run in a checkout only (`cargo xtask bench go`): nobody fetches it. A module of its own, so that the library does not require its peers.
module github.com/bulla-dev/bulla/go/bench

go 1.26.0

require (
	github.com/bulla-dev/bulla/go v0.0.0
	github.com/zeebo/blake3 v0.2.4
	golang.org/x/sys v0.49.0
	lukechampine.com/blake3 v1.4.1
)

require github.com/klauspost/cpuid/v2 v2.0.12 // indirect

replace github.com/bulla-dev/bulla/go => ../
