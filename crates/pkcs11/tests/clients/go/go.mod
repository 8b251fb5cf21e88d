// A module of its own: nothing else of the repository needs what it requires. It runs in a checkout only: nobody fetches it.
module github.com/bulla-dev/bulla/crates/pkcs11/tests/clients/go

go 1.26

require github.com/ThalesGroup/crypto11 v1.6.2

require (
	github.com/miekg/pkcs11 v1.1.2 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/thales-e-security/pool v0.0.2 // indirect
)
