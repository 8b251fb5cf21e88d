module github.com/bulla-dev/bulla/go/kms

go 1.24.0
