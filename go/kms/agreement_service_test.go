//go:build service

package kms

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestAgainstTheServiceSecretsAreDerived(t *testing.T) {
	client, ctx := service(t), context.Background()
	for algorithm, curve := range map[string]ecdh.Curve{
		"ecdh-p256": ecdh.P256(), "ecdh-p384": ecdh.P384(), "ecdh-p521": ecdh.P521(), "x25519": ecdh.X25519(),
	} {
		label := fmt.Sprintf("go-%s-%d", algorithm, os.Getpid())
		key, err := client.CreateKey(ctx, NewKey{Algorithm: algorithm, Label: label})
		if err != nil {
			t.Fatal(err)
		}
		peer, err := curve.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		derived, err := client.DeriveSharedSecret(ctx, label, peer.PublicKey())
		if err != nil || derived.Version != 1 || strings.Contains(fmt.Sprint(derived), fmt.Sprint(derived.Bytes)) {
			t.Fatal(err)
		}
		ours, err := curve.NewPublicKey(key.Versions[0].PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := peer.ECDH(ours)
		if err != nil || !bytes.Equal(secret, derived.Bytes) {
			t.Fatal("another secret", err)
		}
		if _, err := client.Sign(ctx, label, nil); !errors.Is(err, CodeKeyUsageMismatch) {
			t.Fatal(err)
		}
	}
}
