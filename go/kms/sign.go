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
	results := make([]SignResult, 0, len(items))
	for _, part := range parts(items) {
		body := make([]SignItem, len(part))
		for i, item := range part {
			body[i] = SignItem{item.Key, orEmpty(item.Message)}
		}
		var answer struct {
			Results []struct {
				Signature
				Error *Error `json:"error"`
			} `json:"results"`
		}
		err := c.call(ctx, http.MethodPost, "/api/v1/sign", map[string]any{"items": body}, &answer, reads)
		if err == nil && len(answer.Results) != len(part) {
			err = fmt.Errorf("kms: %d results for %d items", len(answer.Results), len(part))
		}
		if err != nil {
			return results, err
		}
		for _, one := range answer.Results {
			results = append(results, SignResult{one.Signature, errorOrNil(one.Error)})
		}
	}
	return results, nil
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
	results := make([]VerifyResult, 0, len(items))
	for _, part := range parts(items) {
		body := make([]VerifyItem, len(part))
		for i, item := range part {
			body[i] = VerifyItem{item.Key, orEmpty(item.Message), orEmpty(item.Signature)}
		}
		var answer struct {
			Results []struct {
				Valid bool   `json:"valid"`
				Error *Error `json:"error"`
			} `json:"results"`
		}
		err := c.call(ctx, http.MethodPost, "/api/v1/verify", map[string]any{"items": body}, &answer, reads)
		if err == nil && len(answer.Results) != len(part) {
			err = fmt.Errorf("kms: %d results for %d items", len(answer.Results), len(part))
		}
		if err != nil {
			return results, err
		}
		for _, one := range answer.Results {
			results = append(results, VerifyResult{one.Valid && one.Error == nil, errorOrNil(one.Error)})
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
