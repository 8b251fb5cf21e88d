//go:build service

package kms

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"testing"
)

// TestAgainstTheService runs against the real service, whose address is in BULLA_ADDR and whose
// token is in BULLA_TOKEN.
func TestAgainstTheService(t *testing.T) {
	address := os.Getenv("BULLA_ADDR")
	if address == "" {
		t.Fatal("BULLA_ADDR names no service")
	}
	client, err := New(address, WithToken(os.Getenv("BULLA_TOKEN")))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	label := fmt.Sprintf("go-client-%d", os.Getpid())
	key, err := client.CreateKey(ctx, NewKey{Label: label})
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("a message")
	first, err := client.Sign(ctx, label, message)
	if err != nil || !ed25519.Verify(key.Versions[0].PublicKey, message, first.Bytes) {
		t.Fatal(first, err)
	}
	rotated, err := client.Rotate(ctx, key.Name)
	if err != nil || rotated.Head != 2 || rotated.Versions[0].Retired == nil {
		t.Fatal(rotated, err)
	}
	if valid, err := client.Verify(ctx, first.Key, message, first.Bytes); !valid || err != nil {
		t.Fatal("an older version verifies", err)
	}
	if valid, err := client.Verify(ctx, label, message, first.Bytes); valid || err != nil {
		t.Fatal("and is not the newest", err)
	}
	results, err := client.SignMany(ctx, []SignItem{{label, nil}, {"no-such-key", nil}, {label, bytes.Repeat(message, 1000)}})
	if err != nil || results[0].Err != nil || !errors.Is(results[1].Err, &Error{Code: "key_not_found"}) || results[2].Err != nil {
		t.Fatal(results, err)
	}
	verdicts, err := client.VerifyMany(ctx, []VerifyItem{{results[0].Key, nil, results[0].Bytes}, {results[0].Key, message, results[0].Bytes}})
	if err != nil || !verdicts[0].Valid || verdicts[1].Valid {
		t.Fatal(verdicts, err)
	}
	if _, err := client.Disable(ctx, label); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Sign(ctx, label, message); !errors.Is(err, &Error{Code: "key_disabled"}) {
		t.Fatal(err)
	}
	if _, err := client.Enable(ctx, label); err != nil {
		t.Fatal(err)
	}
	found := 0
	for listed, err := range client.Keys(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if listed.Name == key.Name && listed.Label == label {
			found++
		}
	}
	if found != 1 {
		t.Fatalf("the key is listed %d times", found)
	}
}
