package kms_test

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/bulla-dev/bulla/go/kms"
)

// newAgreementExampleClient starts a service that has a key of X25519, and returns a client of it
// and the key's public key.
func newAgreementExampleClient() (*kms.Client, *ecdh.PublicKey) {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	derive := func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			PublicKey struct {
				Data []byte `json:"data"`
			} `json:"public_key"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			panic(err)
		}
		peer, err := x509.ParsePKIXPublicKey(body.PublicKey.Data)
		if err != nil {
			panic(err)
		}
		secret, err := private.ECDH(peer.(*ecdh.PublicKey))
		if err != nil {
			panic(err)
		}
		answer := map[string]any{"key": "local/files/x25519/mail/v1", "version": 1, "shared_secret": secret}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			panic(err)
		}
	}
	client, err := kms.New(httptest.NewServer(http.HandlerFunc(derive)).URL)
	if err != nil {
		panic(err)
	}
	return client, private.PublicKey()
}

func ExampleClient_DeriveSharedSecret() {
	client, public := newAgreementExampleClient()
	// A peer has a key pair of its own, and knows our public key.
	peer, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	theirs, err := peer.ECDH(public)
	if err != nil {
		panic(err)
	}
	derived, err := client.DeriveSharedSecret(context.Background(), "mail", peer.PublicKey())
	if err != nil {
		panic(err)
	}
	defer clear(derived.Bytes)
	fmt.Println(derived.Version, bytes.Equal(derived.Bytes, theirs))
	// Output: 1 true
}

func ExampleSharedSecret_Format() {
	client, public := newAgreementExampleClient()
	derived, err := client.DeriveSharedSecret(context.Background(), "mail", public)
	if err != nil {
		panic(err)
	}
	defer clear(derived.Bytes)
	fmt.Println(derived)
	// Output: {local/files/x25519/mail/v1 1 (secret)}
}
