//go:build service

package kms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
)

// symmetricKeys counts the keys of these tests, so that each has a label of its own.
var symmetricKeys atomic.Int64

func symmetricKey(t *testing.T, client *Client, key NewKey) string {
	t.Helper()
	key.Label = fmt.Sprintf("go-symmetric-%d-%d", os.Getpid(), symmetricKeys.Add(1))
	made, err := client.CreateKey(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	if made.Versions[0].PublicKey != nil || made.Derivation != key.Derivation {
		t.Fatal(made)
	}
	return key.Label
}

func TestAgainstTheServiceValuesAreEncrypted(t *testing.T) {
	client, ctx := service(t), context.Background()
	for _, algorithm := range []string{"aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"} {
		label := symmetricKey(t, client, NewKey{Algorithm: algorithm})
		order := &EncryptionOptions{AssociatedData: []byte("order 7")}
		made, err := client.Encrypt(ctx, label, []byte("4 crates"), order)
		if err != nil {
			t.Fatal(err)
		}
		found, err := client.Decrypt(ctx, label, made.Bytes, order)
		if err != nil || string(found.Bytes) != "4 crates" || found.Key != made.Key {
			t.Fatal(found, err)
		}
		if _, err := client.Decrypt(ctx, label, made.Bytes, nil); !errors.Is(err, CodeInvalidCiphertext) {
			t.Fatal(err)
		}
		if _, err := client.Rotate(ctx, label); err != nil {
			t.Fatal(err)
		}
		again, err := client.Rewrap(ctx, label, made.Bytes, order)
		if err != nil || again.Version != 2 {
			t.Fatal(again, err)
		}
		key, err := client.GenerateDataKey(ctx, label, 512, order)
		if err != nil || len(key.Plaintext) != 64 {
			t.Fatal(key, err)
		}
		opened, err := client.Decrypt(ctx, label, key.Wrapped.Bytes, order)
		if err != nil || !bytes.Equal(opened.Bytes, key.Plaintext) {
			t.Fatal(opened, err)
		}
		if wrapped, err := client.GenerateWrappedDataKey(ctx, label, 128, nil); err != nil || len(wrapped.Bytes) < 16+33 {
			t.Fatal(wrapped, err)
		}
	}
}

func TestAgainstTheServiceKeysAreDerivedFromAContext(t *testing.T) {
	client, ctx := service(t), context.Background()
	for _, derivation := range []string{DerivationPerContext, DerivationConvergent} {
		label := symmetricKey(t, client, NewKey{Algorithm: "aes-256-gcm", Derivation: derivation})
		customer := &EncryptionOptions{Context: []byte("customer 17")}
		first, err := client.Encrypt(ctx, label, nil, customer)
		if err != nil {
			t.Fatal(err)
		}
		second, err := client.Encrypt(ctx, label, nil, customer)
		if err != nil || bytes.Equal(first.Bytes, second.Bytes) != (derivation == DerivationConvergent) {
			t.Fatal(derivation, err)
		}
		if found, err := client.Decrypt(ctx, label, first.Bytes, customer); err != nil || len(found.Bytes) != 0 {
			t.Fatal(found, err)
		}
		if _, err := client.Decrypt(ctx, label, first.Bytes, &EncryptionOptions{Context: []byte("customer 18")}); !errors.Is(err, CodeInvalidCiphertext) {
			t.Fatal(err)
		}
	}
}

func TestAgainstTheServiceBatchesOfSymmetricKeys(t *testing.T) {
	client, ctx := service(t), context.Background()
	label := symmetricKey(t, client, NewKey{Algorithm: "xchacha20-poly1305"})
	items := make([]EncryptItem, MaxBatchItems+1)
	for i := range items {
		items[i].Plaintext = fmt.Append(nil, i)
	}
	made, err := client.EncryptMany(ctx, label, items)
	if err != nil || len(made) != len(items) {
		t.Fatal(len(made), err)
	}
	ciphertexts := []DecryptItem{{Ciphertext: made[MaxBatchItems].Bytes}, {Ciphertext: []byte("altered")}}
	found, err := client.DecryptMany(ctx, label, ciphertexts)
	if err != nil || string(found[0].Bytes) != fmt.Sprint(MaxBatchItems) || !errors.Is(found[1].Err, CodeInvalidCiphertext) {
		t.Fatal(found, err)
	}
	again, err := client.RewrapMany(ctx, label, ciphertexts)
	if err != nil || again[0].Err != nil || !errors.Is(again[1].Err, CodeInvalidCiphertext) {
		t.Fatal(again, err)
	}
}

func TestAgainstTheServiceCodesAreMadeAndVerified(t *testing.T) {
	client, ctx := service(t), context.Background()
	for algorithm, length := range map[string]int{"hmac-sha256": 32, "hmac-sha384": 48, "hmac-sha512": 64, "blake3": 32} {
		label := symmetricKey(t, client, NewKey{Algorithm: algorithm})
		message := []byte("user=7")
		mac, err := client.MAC(ctx, label, message)
		if err != nil || len(mac.Bytes) != length {
			t.Fatal(mac, err)
		}
		if valid, err := client.VerifyMAC(ctx, mac.Key, message, mac.Bytes); !valid || err != nil {
			t.Fatal(err)
		}
		if valid, err := client.VerifyMAC(ctx, mac.Key, nil, mac.Bytes); valid || err != nil {
			t.Fatal("another message has this MAC", err)
		}
		if _, err := client.Rotate(ctx, label); err != nil {
			t.Fatal(err)
		}
		made, err := client.MACMany(ctx, label, [][]byte{message, nil})
		if err != nil || made[0].Version != 2 || made[1].Err != nil {
			t.Fatal(made, err)
		}
		verdicts, err := client.VerifyMACMany(ctx, label, []VerifyMACItem{{message, mac.Bytes, 1}, {message, mac.Bytes, 0}, {nil, made[1].Bytes, 0}, {nil, nil, 9}})
		if err != nil || !verdicts[0].Valid || verdicts[1].Valid || !verdicts[2].Valid || !errors.Is(verdicts[3].Err, CodeUnknownVersion) {
			t.Fatal(verdicts, err)
		}
		if _, err := client.Encrypt(ctx, label, message, nil); !errors.Is(err, CodeKeyUsageMismatch) {
			t.Fatal(err)
		}
	}
}

func TestAgainstTheServiceRandomBytes(t *testing.T) {
	client, ctx := service(t), context.Background()
	first, err := client.Random(ctx, 32)
	if err != nil || len(first) != 32 {
		t.Fatal(first, err)
	}
	if second, err := client.Random(ctx, 32); err != nil || bytes.Equal(first, second) {
		t.Fatal(second, err)
	}
	if _, err := client.Random(ctx, 0); !errors.Is(err, CodeMalformedRequest) {
		t.Fatal(err)
	}
}
