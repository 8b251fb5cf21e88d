module github.com/bulla-dev/bulla/go/readers

go 1.26.0

require (
	github.com/bulla-dev/bulla/go v0.0.0
	github.com/cloudflare/circl v1.6.5
	golang.org/x/crypto v0.58.0
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/bulla-dev/bulla/go => ../
