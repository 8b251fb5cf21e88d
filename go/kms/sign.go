package kms

import (
	"context"
	"fmt"
	"net/http"
)

// MaxBatchItems is the most items that the client sends in one request. Longer batches are several
// requests.
const MaxBatchItems = 1000

// A Signature is a signature and the key version that made it.
type Signature struct {
	// Key is the key version id: Verify takes it as a key.
	Key     string `json:"key"`
	Version uint32 `json:"version"`
	Bytes   []byte `json:"signature"`
}

// Sign signs a message with the latest version of a key.
func (c *Client) Sign(ctx context.Context, key string, message []byte) (*Signature, error) {
	signature := new(Signature)
	body := map[string][]byte{"message": orEmpty(message)}
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/sign"), body, signature, reads); err != nil {
		return nil, err
	}
	return signature, nil
}

// Verify says whether the key made the signature of the message. The key is best the one that
// Signature names; a label means the latest version.
func (c *Client) Verify(ctx context.Context, key string, message, signature []byte) (bool, error) {
	var verdict struct {
		Valid bool `json:"valid"`
	}
	body := map[string][]byte{"message": orEmpty(message), "signature": orEmpty(signature)}
	err := c.call(ctx, http.MethodPost, keyPath(key, "/verify"), body, &verdict, reads)
	return err == nil && verdict.Valid, err
}

// A Scheme is how a key of ECDSA or RSA signs. What is empty is the key's own: the hash function of
// the curve, SHA-256 for RSA, and PSS.
type Scheme struct {
	Hash    HashFunction `json:"hash,omitempty"`
	Padding RSAPadding   `json:"padding,omitempty"`
}

// A HashFunction is one by which keys of ECDSA and RSA sign.
type HashFunction string

// The hash functions of ECDSA and RSA.
const (
	HashSHA256 HashFunction = "sha256"
	HashSHA384 HashFunction = "sha384"
	HashSHA512 HashFunction = "sha512"
)

// An RSAPadding is how an RSA key pads a digest.
type RSAPadding string

// The paddings of RSA. The salt of PSS is as long as the digest.
const (
	PaddingPSS      RSAPadding = "pss"
	PaddingPKCS1v15 RSAPadding = "pkcs1v15"
)

// SignWith signs a message with a key of ECDSA or RSA, by this scheme.
func (c *Client) SignWith(ctx context.Context, key string, message []byte, scheme Scheme) (*Signature, error) {
	signature := new(Signature)
	body := struct {
		Message []byte `json:"message"`
		Scheme
	}{orEmpty(message), scheme}
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/sign"), body, signature, reads); err != nil {
		return nil, err
	}
	return signature, nil
}

// VerifyWith says whether the key made the signature of the message by this scheme.
func (c *Client) VerifyWith(ctx context.Context, key string, message, signature []byte, scheme Scheme) (bool, error) {
	var verdict struct {
		Valid bool `json:"valid"`
	}
	body := struct {
		Message   []byte `json:"message"`
		Signature []byte `json:"signature"`
		Scheme
	}{orEmpty(message), orEmpty(signature), scheme}
	err := c.call(ctx, http.MethodPost, keyPath(key, "/verify"), body, &verdict, reads)
	return err == nil && verdict.Valid, err
}

// A SignItem is one message of a batch.
type SignItem struct {
	Key     string `json:"key"`
	Message []byte `json:"message"`
}

// A SignResult is a signature, or why there is none.
type SignResult struct {
	Signature
	Err error
}

// SignMany signs many messages, and returns a result for each. One item's error does not touch the
// others. The error that it returns itself is that of a request as a whole. Then it returns the
// results of the requests before as well, which belong to the first items.
func (c *Client) SignMany(ctx context.Context, items []SignItem) ([]SignResult, error) {
	type answer struct {
		Signature
		Error *Error `json:"error"`
	}
	each := func(item SignItem) any { return SignItem{item.Key, orEmpty(item.Message)} }
	result := func(one answer) SignResult { return SignResult{one.Signature, errorOrNil(one.Error)} }
	return many(ctx, c, "/api/v1/sign", items, each, result)
}

// A VerifyItem is one signature of a batch.
type VerifyItem struct {
	Key       string `json:"key"`
	Message   []byte `json:"message"`
	Signature []byte `json:"signature"`
}

// A VerifyResult is a verdict. Where nothing could be verified, it is not valid, and Err says why.
type VerifyResult struct {
	Valid bool
	Err   error
}

// VerifyMany verifies many signatures, and returns a verdict for each. No verdict depends on
// another item. If a request fails, it returns the verdicts of the requests before as well, which
// belong to the first items.
func (c *Client) VerifyMany(ctx context.Context, items []VerifyItem) ([]VerifyResult, error) {
	each := func(item VerifyItem) any {
		return VerifyItem{item.Key, orEmpty(item.Message), orEmpty(item.Signature)}
	}
	return many(ctx, c, "/api/v1/verify", items, each, verifyResult)
}

type verdictAnswer struct {
	Valid bool   `json:"valid"`
	Error *Error `json:"error"`
}

func verifyResult(one verdictAnswer) VerifyResult {
	return VerifyResult{one.Valid && one.Error == nil, errorOrNil(one.Error)}
}

// many makes as many requests as the items take. each is an item as a request has it, and result
// reads its part of the answer. If a request fails, it returns the results of the requests before.
func many[I, A, R any](ctx context.Context, c *Client, path string, items []I, each func(I) any, result func(A) R) ([]R, error) {
	results := make([]R, 0, len(items))
	for _, part := range parts(items) {
		body := make([]any, len(part))
		for i, item := range part {
			body[i] = each(item)
		}
		var answer struct {
			Results []A `json:"results"`
		}
		err := c.call(ctx, http.MethodPost, path, map[string]any{"items": body}, &answer, reads)
		if err == nil && len(answer.Results) != len(part) {
			err = fmt.Errorf("kms: %d results for %d items", len(answer.Results), len(part))
		}
		if err != nil {
			return results, err
		}
		for _, one := range answer.Results {
			results = append(results, result(one))
		}
	}
	return results, nil
}

// parts cuts items into as many requests as they take.
func parts[T any](items []T) [][]T {
	var parts [][]T
	for len(items) > MaxBatchItems {
		parts = append(parts, items[:MaxBatchItems])
		items = items[MaxBatchItems:]
	}
	if len(items) > 0 {
		parts = append(parts, items)
	}
	return parts
}

// orEmpty keeps nil from being null in JSON.
func orEmpty(bytes []byte) []byte {
	if bytes == nil {
		return []byte{}
	}
	return bytes
}

// errorOrNil keeps a nil *Error from being an error that is not nil.
func errorOrNil(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}
