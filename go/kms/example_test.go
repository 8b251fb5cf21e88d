package kms_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/bulla-dev/bulla/go/kms"
)

func Example() {
	client, ctx := newExampleClient(), context.Background()
	message := []byte("a message")
	signature, err := client.Sign(ctx, "invoices", message)
	if err != nil {
		log.Fatal(err)
	}
	valid, err := client.Verify(ctx, signature.Key, message, signature.Bytes)
	fmt.Println(signature.Version, valid, err)
	// Output: 1 true <nil>
}

func ExampleNew() {
	for _, address := range []string{"https://keys.example.org:8200", "unix:/run/bulla/socket", "keys.example.org"} {
		_, err := kms.New(address)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// kms: "keys.example.org" is not the address of a service: write http://HOST:PORT, https://HOST:PORT or unix:/PATH
}

func ExampleWithToken() {
	// A program takes its token from the environment, or from a file.
	_, err := kms.New("http://127.0.0.1:8200", kms.WithToken(os.Getenv("BULLA_TOKEN")))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithLogin() {
	// A pod in Kubernetes has its JWT in a file, which the cluster renews.
	_, err := kms.New("https://keys.example.org:8200", kms.WithLogin("release", func(context.Context) (string, error) {
		jwt, err := os.ReadFile("/var/run/secrets/tokens/bulla")
		return string(jwt), err
	}))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleClient_LogIn() {
	ctx := context.Background()
	client, err := kms.New("https://keys.example.org:8200")
	if err != nil {
		log.Fatal(err)
	}
	login, err := client.LogIn(ctx, "release", os.Getenv("CI_JWT"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(login.Holder, "may", login.Operations)
}

func ExampleClient_SignJWT() {
	ctx := context.Background()
	client, err := kms.New("https://keys.example.org:8200")
	if err != nil {
		log.Fatal(err)
	}
	claims := map[string]any{"sub": "job-7", "aud": "https://api.example.org"}
	signed, err := client.SignJWT(ctx, "jobs", claims, 5*time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("Authorization: Bearer", signed.JWT)
}

func ExampleSignedJWT_String() {
	signed := kms.SignedJWT{JWT: "a secret", ID: "p1Zq", Expires: time.Unix(1800000000, 0).UTC()}
	fmt.Println(signed)
	// Output: JWT p1Zq until 2027-01-15 08:00:00 +0000 UTC
}

func ExampleSignedJWT_GoString() {
	signed := kms.SignedJWT{JWT: "a secret", ID: "p1Zq", Expires: time.Unix(1800000000, 0).UTC()}
	fmt.Printf("%#v\n", signed)
	// Output: JWT p1Zq until 2027-01-15 08:00:00 +0000 UTC
}

func ExampleLogin_String() {
	login := kms.Login{Token: "a secret", Holder: "ci/repo:acme/app", Expires: time.Unix(1800000000, 0).UTC()}
	fmt.Println(login)
	// Output: login of ci/repo:acme/app until 2027-01-15 08:00:00 +0000 UTC
}

func ExampleLogin_GoString() {
	login := kms.Login{Token: "a secret", Holder: "ci/repo:acme/app", Expires: time.Unix(1800000000, 0).UTC()}
	fmt.Printf("%#v\n", login)
	// Output: login of ci/repo:acme/app until 2027-01-15 08:00:00 +0000 UTC
}

func ExampleWithHTTPClient() {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 8
	_, err := kms.New("http://127.0.0.1:8200", kms.WithHTTPClient(&http.Client{Transport: transport, Timeout: 2 * time.Second}))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithRetries() {
	// A request is repeated 5 times. The first pause takes at most 10 milliseconds.
	_, err := kms.New("http://127.0.0.1:8200", kms.WithRetries(5, 10*time.Millisecond))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleClient_CreateKey() {
	client, ctx := newExampleClient(), context.Background()
	key, err := client.CreateKey(ctx, kms.NewKey{Label: "releases"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(key.Label, key.Algorithm, key.LatestVersion)
	// Output: releases ed25519 1
}

func ExampleClient_Key() {
	client, ctx := newExampleClient(), context.Background()
	key, err := client.Key(ctx, "invoices")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(key.ID, key.State)
	_, err = client.Key(ctx, "no-such-key")
	fmt.Println(errors.Is(err, kms.CodeKeyNotFound))
	// Output:
	// local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-000000000001 enabled
	// true
}

func ExampleClient_Rotate() {
	client, ctx := newExampleClient(), context.Background()
	key, err := client.Rotate(ctx, "invoices")
	if err != nil {
		log.Fatal(err)
	}
	signature, err := client.Sign(ctx, "invoices", []byte("a message"))
	fmt.Println(key.LatestVersion, signature.Version, err)
	// Output: 2 2 <nil>
}

func ExampleClient_Disable() {
	client, ctx := newExampleClient(), context.Background()
	if _, err := client.Disable(ctx, "invoices"); err != nil {
		log.Fatal(err)
	}
	_, err := client.Sign(ctx, "invoices", []byte("a message"))
	fmt.Println(errors.Is(err, kms.CodeKeyDisabled))
	// Output: true
}

func ExampleClient_Enable() {
	client, ctx := newExampleClient(), context.Background()
	if _, err := client.Disable(ctx, "invoices"); err != nil {
		log.Fatal(err)
	}
	key, err := client.Enable(ctx, "invoices")
	fmt.Println(key.State, err)
	// Output: enabled <nil>
}

func ExampleClient_Keys() {
	client, ctx := newExampleClient(), context.Background()
	for key, err := range client.Keys(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(key.Label, len(key.Versions))
	}
	// Output: invoices 1
}

func ExampleClient_Versions() {
	client, ctx := newExampleClient(), context.Background()
	if _, err := client.Rotate(ctx, "invoices"); err != nil {
		log.Fatal(err)
	}
	for version, err := range client.Versions(ctx, "invoices") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(version.ID, version.State)
	}
	// Output:
	// local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-000000000001/v1 usable
	// local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-000000000001/v2 usable
}

func ExampleClient_AuditEntries() {
	client, ctx := newExampleClient(), context.Background()
	for entry, err := range client.AuditEntries(ctx, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Number, entry.Time, entry.Actor, entry.Operation, entry.Result)
	}
	// Output: 0 2026-01-31 09:30:00 +0000 UTC app create ok
}

func ExampleClient_Sign() {
	client, ctx := newExampleClient(), context.Background()
	signature, err := client.Sign(ctx, "invoices", []byte("a message"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(signature.Key, len(signature.Bytes))
	// Output: local/files/ed25519/0197a5c0-4c1e-7e0b-9a37-000000000001/v1 64
}

func ExampleClient_Verify() {
	client, ctx := newExampleClient(), context.Background()
	signature, err := client.Sign(ctx, "invoices", []byte("a message"))
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range []string{"a message", "another message"} {
		valid, err := client.Verify(ctx, signature.Key, []byte(message), signature.Bytes)
		fmt.Println(valid, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleClient_SignWith() {
	client, ctx := newExampleClient(), context.Background()
	if _, err := client.CreateKey(ctx, kms.NewKey{Label: "certificates", Algorithm: "rsa-2048"}); err != nil {
		log.Fatal(err)
	}
	// What certificates and most JSON Web Tokens have.
	scheme := kms.Scheme{Hash: kms.HashSHA256, Padding: kms.PaddingPKCS1v15}
	signature, err := client.SignWith(ctx, "certificates", []byte("a message"), scheme)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(signature.Version)
	// Output: 1
}

func ExampleClient_VerifyWith() {
	client, ctx := newExampleClient(), context.Background()
	if _, err := client.CreateKey(ctx, kms.NewKey{Label: "certificates", Algorithm: "rsa-2048"}); err != nil {
		log.Fatal(err)
	}
	scheme := kms.Scheme{Hash: kms.HashSHA384, Padding: kms.PaddingPSS}
	signature, err := client.SignWith(ctx, "certificates", []byte("a message"), scheme)
	if err != nil {
		log.Fatal(err)
	}
	valid, err := client.VerifyWith(ctx, signature.Key, []byte("a message"), signature.Bytes, scheme)
	fmt.Println(valid, err)
	// Output: true <nil>
}

func ExampleClient_SignMany() {
	client, ctx := newExampleClient(), context.Background()
	results, err := client.SignMany(ctx, []kms.SignItem{
		{Key: "invoices", Message: []byte("a message")},
		{Key: "no-such-key", Message: []byte("a message")},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range results {
		fmt.Println(len(result.Bytes), errors.Is(result.Err, kms.CodeKeyNotFound))
	}
	// Output:
	// 64 false
	// 0 true
}

func ExampleClient_VerifyMany() {
	client, ctx := newExampleClient(), context.Background()
	signature, err := client.Sign(ctx, "invoices", []byte("a message"))
	if err != nil {
		log.Fatal(err)
	}
	results, err := client.VerifyMany(ctx, []kms.VerifyItem{
		{Key: signature.Key, Message: []byte("a message"), Signature: signature.Bytes},
		{Key: signature.Key, Message: []byte("another message"), Signature: signature.Bytes},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results[0].Valid, results[1].Valid)
	// Output: true false
}

func ExampleClient_NewBatcher() {
	client, ctx := newExampleClient(), context.Background()
	batcher := client.NewBatcher()
	defer batcher.Close()
	signatures := make(chan *kms.Signature)
	for i := range 10 {
		go func() {
			signature, err := batcher.Sign(ctx, "invoices", []byte{byte(i)})
			if err != nil {
				log.Fatal(err)
			}
			signatures <- signature
		}()
	}
	for range 10 {
		<-signatures
	}
	fmt.Println("10 signatures")
	// Output: 10 signatures
}

func ExampleBatcher_Sign() {
	client, ctx := newExampleClient(), context.Background()
	batcher := client.NewBatcher()
	defer batcher.Close()
	signature, err := batcher.Sign(ctx, "invoices", []byte("a message"))
	fmt.Println(len(signature.Bytes), err)
	// Output: 64 <nil>
}

func ExampleBatcher_Close() {
	client, ctx := newExampleClient(), context.Background()
	batcher := client.NewBatcher()
	batcher.Close()
	_, err := batcher.Sign(ctx, "invoices", []byte("a message"))
	fmt.Println(errors.Is(err, kms.ErrClosed))
	// Output: true
}

// A certificate request, signed by a key that never leaves the service.
func ExampleClient_Signer() {
	client, ctx := newExampleClient(), context.Background()
	signer, err := client.Signer(ctx, "invoices")
	if err != nil {
		log.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), signer)
	if err != nil {
		log.Fatal(err)
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(request.SignatureAlgorithm, request.CheckSignature())
	// Output: Ed25519 <nil>
}

func ExampleSigner_Version() {
	client, ctx := newExampleClient(), context.Background()
	signer, err := client.Signer(ctx, "invoices")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(signer.Version().Version)
	// Output: 1
}

func ExampleSigner_Public() {
	client, ctx := newExampleClient(), context.Background()
	signer, err := client.Signer(ctx, "invoices")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T\n", signer.Public())
	// Output: ed25519.PublicKey
}

// With Ed25519 and SHA-512, a Signer signs a digest (Ed25519ph).
func ExampleSigner_Sign() {
	client, ctx := newExampleClient(), context.Background()
	signer, err := client.Signer(ctx, "invoices")
	if err != nil {
		log.Fatal(err)
	}
	digest, options := sha512.Sum512([]byte("a message")), &ed25519.Options{Hash: crypto.SHA512}
	signature, err := signer.Sign(nil, digest[:], options)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ed25519.VerifyWithOptions(signer.Public().(ed25519.PublicKey), digest[:], signature, options))
	// Output: <nil>
}

func ExampleSigner_SignMessage() {
	client, ctx := newExampleClient(), context.Background()
	signer, err := client.Signer(ctx, "invoices")
	if err != nil {
		log.Fatal(err)
	}
	message := []byte("a message")
	signature, err := signer.SignMessage(nil, message, crypto.Hash(0))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ed25519.Verify(signer.Public().(ed25519.PublicKey), message, signature))
	// Output: true
}

func ExampleError() {
	client, ctx := newExampleClient(), context.Background()
	_, err := client.Key(ctx, "no-such-key")
	var refused *kms.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code == kms.CodeKeyNotFound, refused.Status, refused.Retryable)
	}
	fmt.Println(err)
	// Output:
	// true 404 false
	// kms: the tenant local has no key no-such-key (key_not_found)
}

func ExampleCode() {
	client, ctx := newExampleClient(), context.Background()
	_, err := client.Key(ctx, "no-such-key")
	if errors.Is(err, kms.CodeKeyNotFound) {
		fmt.Println("make the key first")
	}
	// Output: make the key first
}
