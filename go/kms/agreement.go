package kms

import (
	"context"
	"crypto/ecdh"
	"crypto/x509"
	"fmt"
	"net/http"
)

// A SharedSecret is a secret that a key shares with the holder of a peer's private key, and the key
// version that derived it. Formatting it with package fmt does not show the secret. Go cannot wipe
// memory for certain: [clear] Bytes after the last use.
type SharedSecret struct {
	// Key is the key version id.
	Key     string `json:"key"`
	Version uint32 `json:"version"`
	Bytes   []byte `json:"shared_secret"`
}

// Format shows no secret.
func (s SharedSecret) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s %d (secret)}", s.Key, s.Version)
}

// DeriveSharedSecret derives the secret that a key shares with the holder of the peer's private
// key, as the method ECDH of [ecdh.PrivateKey] does. The key is best the key version whose public
// key the peer has; a label means the latest version.
//
// A shared secret is no key: derive one from it, for example with crypto/hkdf or by the Concat KDF
// of JWE.
func (c *Client) DeriveSharedSecret(ctx context.Context, key string, peer *ecdh.PublicKey) (*SharedSecret, error) {
	der, err := x509.MarshalPKIXPublicKey(peer)
	if err != nil {
		return nil, fmt.Errorf("the public key of the peer: %w", err)
	}
	type publicKey struct {
		Format string `json:"format"`
		Data   []byte `json:"data"`
	}
	body := struct {
		PublicKey publicKey `json:"public_key"`
	}{publicKey{"der", der}}
	derived := new(SharedSecret)
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/derive-shared-secret"), body, derived, reads); err != nil {
		return nil, err
	}
	return derived, nil
}
