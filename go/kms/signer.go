package kms

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
)

// A Signer signs with one version of a key that the service holds. It is a [crypto.Signer] and a
// crypto.MessageSigner: crypto/x509, for example, makes certificates with it.
//
// Keys of the algorithms ed25519 and ecdsa-p256 have Signers. After the key is rotated, a Signer's
// signatures fail with [CodeNotLatestVersion], because they would not belong to its public key:
// make a new one.
type Signer struct {
	client *Client
	ctx    context.Context
	key    *Key
	latest *Version
	public crypto.PublicKey
}

// Signer makes a signer of the latest version of a key. The context bounds all of its signatures.
func (c *Client) Signer(ctx context.Context, key string) (*Signer, error) {
	read, err := c.Key(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(read.Versions) == 0 {
		return nil, errors.New("kms: the service's answer is not what this client expects: a key without versions")
	}
	latest := &read.Versions[len(read.Versions)-1]
	public, err := publicKey(read.Algorithm, latest.PublicKey)
	if err != nil {
		return nil, err
	}
	return &Signer{c, ctx, read, latest, public}, nil
}

func publicKey(algorithm string, bytes []byte) (crypto.PublicKey, error) {
	switch algorithm {
	case "ed25519":
		if len(bytes) == ed25519.PublicKeySize {
			return ed25519.PublicKey(bytes), nil
		}
	case "ecdsa-p256":
		if x, y := elliptic.UnmarshalCompressed(elliptic.P256(), bytes); x != nil {
			return &ecdsa.PublicKey{Curve: elliptic.P256(), X: x, Y: y}, nil
		}
	default:
		return nil, fmt.Errorf("kms: a key of %s has no crypto.Signer: its algorithm must be ed25519 or ecdsa-p256", algorithm)
	}
	return nil, fmt.Errorf("kms: the service's answer is not what this client expects: it has no public key of %s", algorithm)
}

// Version is the version that signs.
func (s *Signer) Version() *Version { return s.latest }

// Public returns the public key: an ed25519.PublicKey or a *ecdsa.PublicKey.
func (s *Signer) Public() crypto.PublicKey { return s.public }

// Sign signs a digest, or with Ed25519 and without a hash function in opts a message. The service
// has the random numbers: the first argument is not used.
//
// With Ed25519 and SHA-512, the signature is Ed25519ph (RFC 8032). A key of ecdsa-p256 must have
// been made with [NewKey.SignsDigests]; other ones sign messages only: see [Signer.SignMessage].
func (s *Signer) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	hash := opts.HashFunc()
	if hash != 0 && len(digest) != hash.Size() {
		return nil, fmt.Errorf("kms: a digest of %s has %d bytes, not %d", hash, hash.Size(), len(digest))
	}
	if _, ok := s.public.(ed25519.PublicKey); ok {
		return s.signEd25519(digest, opts)
	}
	if !s.key.SignsDigests {
		return nil, errors.New("kms: this key signs messages, not their digests: use crypto.SignMessage, or make a key with SignsDigests")
	}
	return s.signECDSADigest(digest, hash)
}

// SignMessage signs a message, which is hashed as opts says. The service has the random numbers:
// the first argument is not used.
func (s *Signer) SignMessage(random io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	hash := opts.HashFunc()
	_, isEd25519 := s.public.(ed25519.PublicKey)
	if isEd25519 && hash == 0 {
		return s.signEd25519(message, opts)
	}
	if !isEd25519 && hash == crypto.SHA256 && !s.key.SignsDigests {
		signature, err := s.client.Sign(s.ctx, s.latest.ID, message)
		if err != nil {
			return nil, err
		}
		return marshalECDSA(signature.Bytes)
	}
	if !hash.Available() {
		return nil, fmt.Errorf("kms: the hash function %s is not linked into this program", hash)
	}
	hasher := hash.New()
	hasher.Write(message)
	return s.Sign(random, hasher.Sum(nil), opts)
}

func (s *Signer) signEd25519(message []byte, opts crypto.SignerOpts) ([]byte, error) {
	domain := ""
	if options, ok := opts.(*ed25519.Options); ok {
		domain = options.Context
	}
	switch hash := opts.HashFunc(); {
	case hash == 0 && domain == "":
		signature, err := s.client.Sign(s.ctx, s.latest.ID, message)
		if err != nil {
			return nil, err
		}
		return signature.Bytes, nil
	case hash == crypto.SHA512:
		body := map[string]any{"prehash": "ed25519ph", "digest": message, "context": []byte(domain)}
		var signature Signature
		err := s.client.call(s.ctx, http.MethodPost, keyPath(s.latest.ID, "/sign-digest"), body, &signature, reads)
		return signature.Bytes, err
	case hash == 0:
		return nil, errors.New("kms: the service does not make signatures of Ed25519ctx: use no context, or SHA-512")
	default:
		return nil, fmt.Errorf("kms: Ed25519 has no signatures of digests of %s, only of SHA-512", hash)
	}
}

// transitHashes are the hash functions of ECDSA by their names in Vault's API.
var transitHashes = map[crypto.Hash]string{
	crypto.SHA256: "sha2-256",
	crypto.SHA384: "sha2-384",
	crypto.SHA512: "sha2-512",
}

// signECDSADigest signs by the service's interface for clients of Vault, which names keys by their
// labels.
func (s *Signer) signECDSADigest(digest []byte, hash crypto.Hash) ([]byte, error) {
	name, ok := transitHashes[hash]
	if !ok {
		return nil, fmt.Errorf("kms: the service signs no digests of %s: use SHA-256, SHA-384 or SHA-512", hash)
	}
	if s.key.Label == "" {
		return nil, errors.New("kms: a key signs digests only if it has a label")
	}
	body := map[string]any{"input": digest, "prehashed": true, "marshaling_algorithm": "asn1", "key_version": s.latest.Version}
	var answer struct {
		Data struct {
			Signature string `json:"signature"`
		} `json:"data"`
	}
	path := "/v1/transit/sign/" + url.PathEscape(s.key.Label) + "/" + name
	if err := s.client.call(s.ctx, http.MethodPost, path, body, &answer, reads); err != nil {
		return nil, err
	}
	// vault:v1:SIGNATURE
	text := answer.Data.Signature[strings.LastIndexByte(answer.Data.Signature, ':')+1:]
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("kms: the service's answer is not what this client expects: %w", err)
	}
	return signature, nil
}

// marshalECDSA turns r and s, half of the bytes each, into the form of crypto/ecdsa.
func marshalECDSA(signature []byte) ([]byte, error) {
	half := len(signature) / 2
	r, s := new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:])
	return asn1.Marshal(struct{ R, S *big.Int }{r, s})
}
