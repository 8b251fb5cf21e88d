package kms

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// A Key is everything about a key but its private keys.
type Key struct {
	// ID is the key id: TENANT/PURPOSE/ALGORITHM/UUID.
	ID string `json:"key"`
	// Label is unique within the tenant; it may be empty.
	Label     string `json:"label"`
	Algorithm string `json:"algorithm"`
	// State is enabled, disabled, pending_destruction or destroyed.
	State      string `json:"state"`
	Revision   uint64 `json:"revision"`
	Backend    string `json:"backend"`
	Exportable bool   `json:"exportable"`
	// SignsDigests is true for a key of ECDSA that signs digests, and so no statements.
	SignsDigests   bool   `json:"signs_digests"`
	MinimumVersion uint32 `json:"minimum_version"`
	// Derivation is DerivationPerContext or DerivationConvergent for a key that encrypts with keys
	// derived from a context; otherwise it is empty.
	Derivation string   `json:"derivation"`
	Rotation   Rotation `json:"rotation"`
	// ApprovalRule says who must approve each use of the key; nil if nobody must.
	ApprovalRule *ApprovalRule `json:"approval_rule"`
	// LatestVersion is the number of the version that signs, encrypts or makes MACs.
	LatestVersion uint32 `json:"head"`
	// Versions are all versions, version 1 first.
	Versions []Version `json:"versions"`
}

// A Version is one version of a key. The latest signs, encrypts or makes MACs, and all verify or
// decrypt.
type Version struct {
	// ID is the key version id: the key id, and /vN.
	ID      string `json:"id"`
	Version uint32 `json:"version"`
	// PublicKey is nil if the algorithm is symmetric.
	PublicKey []byte    `json:"public_key"`
	Created   time.Time `json:"created"`
	// Retired is when the next version took its place; nil for the latest.
	Retired *time.Time `json:"retired"`
	// State is usable, revoked or destroyed.
	State string `json:"state"`
	// Origin is generated, imported or public_only.
	Origin string `json:"origin"`
}

// Rotation says when the service rotates a key by itself. Zero is no bound.
type Rotation struct {
	MaxAgeSeconds uint64 `json:"max_age_seconds,omitempty"`
	MaxUses       uint64 `json:"max_uses,omitempty"`
}

// NewKey is a key to create. The zero value is an Ed25519 key without a label.
type NewKey struct {
	// Purpose is a word of the caller's choice, and the second part of the key's id; empty for
	// "files".
	Purpose string `json:"purpose,omitempty"`
	// Algorithm is, for example, "ml-dsa-65-ed25519", "aes-256-gcm" or "hmac-sha256"; empty for
	// "ed25519".
	Algorithm string `json:"algorithm,omitempty"`
	// Label is unique within the tenant; empty for none.
	Label string `json:"label,omitempty"`
	// Exportable says whether the private keys may leave the service, wrapped for a recipient. It
	// cannot be changed later.
	Exportable bool `json:"exportable,omitempty"`
	// SignsDigests makes a key of ECDSA that signs digests, and so no statements.
	SignsDigests bool `json:"signs_digests,omitempty"`
	// Derivation is DerivationPerContext or DerivationConvergent for a key that encrypts with keys
	// derived from a context. It cannot be changed later.
	Derivation string    `json:"derivation,omitempty"`
	Rotation   *Rotation `json:"rotation,omitempty"`
	// ApprovalRule says who must approve each use of the key. Such a key never loses its rule.
	ApprovalRule *ApprovalRule `json:"approval_rule,omitempty"`
	// Backend makes and keeps the private keys: "pkcs11" is the device with which the service was
	// started, "group" the nodes of its settings, of which none has the whole key. Empty for
	// software.
	Backend string `json:"backend,omitempty"`
}

// The derivations of keys that encrypt.
const (
	// DerivationPerContext derives a key from each context that callers give.
	DerivationPerContext = "per_context"
	// DerivationConvergent also gives equal plaintexts in one context equal ciphertexts, and takes
	// no associated data. Use it only to search for equal values.
	DerivationConvergent = "convergent"
)

// CreateKey makes a key with its version 1.
func (c *Client) CreateKey(ctx context.Context, key NewKey) (*Key, error) {
	return c.key(ctx, http.MethodPost, "/api/v1/keys", key, changes)
}

// Key reads a key.
func (c *Client) Key(ctx context.Context, key string) (*Key, error) {
	return c.key(ctx, http.MethodGet, keyPath(key, ""), nil, reads)
}

// Rotate adds a version to a key. The new version signs, encrypts or makes MACs from now on.
func (c *Client) Rotate(ctx context.Context, key string) (*Key, error) {
	return c.key(ctx, http.MethodPost, keyPath(key, "/rotate"), nil, changes)
}

// Enable lets a disabled key be used again.
func (c *Client) Enable(ctx context.Context, key string) (*Key, error) {
	return c.key(ctx, http.MethodPatch, keyPath(key, ""), map[string]bool{"enabled": true}, changes)
}

// Disable keeps a key from being used. Its signatures still verify.
func (c *Client) Disable(ctx context.Context, key string) (*Key, error) {
	return c.key(ctx, http.MethodPatch, keyPath(key, ""), map[string]bool{"enabled": false}, changes)
}

func (c *Client) key(ctx context.Context, method, path string, body any, does effect) (*Key, error) {
	key := new(Key)
	if err := c.call(ctx, method, path, body, key, does); err != nil {
		return nil, err
	}
	return key, nil
}

// Keys lists the keys that the caller may read, sorted by id. An error ends the sequence.
func (c *Client) Keys(ctx context.Context) iter.Seq2[*Key, error] {
	return list(ctx, c, "/api/v1/keys", "", func(page keyPage) ([]*Key, string) { return page.Keys, page.Next })
}

type keyPage struct {
	Keys []*Key `json:"keys"`
	Next string `json:"next"`
}

// Versions lists the versions of a key, version 1 first. An error ends the sequence.
func (c *Client) Versions(ctx context.Context, key string) iter.Seq2[*Version, error] {
	return func(yield func(*Version, error) bool) {
		read, err := c.Key(ctx, key)
		if err != nil {
			yield(nil, err)
			return
		}
		for i := range read.Versions {
			if !yield(&read.Versions[i], nil) {
				return
			}
		}
	}
}
