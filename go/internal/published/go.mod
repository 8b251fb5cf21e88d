// A module of its own, so that the library does not require what its checks need. It runs in a checkout only: nobody fetches it.
module github.com/bulla-dev/bulla/go/internal/published

go 1.26

require golang.org/x/mod v0.37.0
