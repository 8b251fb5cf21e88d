//go:build service

package kms

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// service is a client of the real service, whose address is in BULLA_ADDR and whose token is in
// BULLA_TOKEN.
func service(t *testing.T) *Client {
	t.Helper()
	address := os.Getenv("BULLA_ADDR")
	if address == "" {
		t.Fatal("BULLA_ADDR names no service")
	}
	client, err := New(address, WithToken(os.Getenv("BULLA_TOKEN")))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAgainstTheService(t *testing.T) {
	client := service(t)
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
	rotated, err := client.Rotate(ctx, key.ID)
	if err != nil || rotated.LatestVersion != 2 || rotated.Versions[0].Retired == nil {
		t.Fatal(rotated, err)
	}
	if valid, err := client.Verify(ctx, first.Key, message, first.Bytes); !valid || err != nil {
		t.Fatal("an older version verifies", err)
	}
	if valid, err := client.Verify(ctx, label, message, first.Bytes); valid || err != nil {
		t.Fatal("and is not the newest", err)
	}
	results, err := client.SignMany(ctx, []SignItem{{label, nil}, {"no-such-key", nil}, {label, bytes.Repeat(message, 1000)}})
	if err != nil || results[0].Err != nil || !errors.Is(results[1].Err, CodeKeyNotFound) || results[2].Err != nil {
		t.Fatal(results, err)
	}
	verdicts, err := client.VerifyMany(ctx, []VerifyItem{{results[0].Key, nil, results[0].Bytes}, {results[0].Key, message, results[0].Bytes}})
	if err != nil || !verdicts[0].Valid || verdicts[1].Valid {
		t.Fatal(verdicts, err)
	}
	if _, err := client.Disable(ctx, label); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Sign(ctx, label, message); !errors.Is(err, CodeKeyDisabled) {
		t.Fatal(err)
	}
	if _, err := client.Enable(ctx, label); err != nil {
		t.Fatal(err)
	}
	versions := 0
	for version, err := range client.Versions(ctx, label) {
		versions++
		if err != nil || int(version.Version) != versions || len(version.PublicKey) != ed25519.PublicKeySize {
			t.Fatal(version, err)
		}
	}
	if versions != 2 {
		t.Fatalf("%d versions", versions)
	}
	noted := 0
	for entry, err := range client.AuditEntries(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Key == first.Key && entry.Operation == "sign" && entry.Result == "ok" {
			noted++
		}
	}
	if noted != 1 {
		t.Fatalf("the audit log has the first signature %d times", noted)
	}
	found := 0
	for listed, err := range client.Keys(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if listed.ID == key.ID && listed.Label == label {
			found++
		}
	}
	if found != 1 {
		t.Fatalf("the key is listed %d times", found)
	}
}

func TestAgainstTheServiceASignerMakesCertificates(t *testing.T) {
	client := service(t)
	for _, test := range []struct {
		name string
		key  NewKey
		algo x509.SignatureAlgorithm
	}{
		{"Ed25519", NewKey{}, x509.PureEd25519},
		{"ECDSA", NewKey{Algorithm: "ecdsa-p256"}, x509.ECDSAWithSHA256},
		{"ECDSA by digests", NewKey{Algorithm: "ecdsa-p256", SignsDigests: true}, x509.ECDSAWithSHA384},
	} {
		test.key.Label = fmt.Sprintf("signer-%d-%d", os.Getpid(), test.algo)
		signer := signerOf(t, client, test.key)
		template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "bulla"}, SignatureAlgorithm: test.algo}
		made, err := x509.CreateCertificateRequest(nil, template, signer)
		if err != nil {
			t.Fatal(test.name, err)
		}
		request, err := x509.ParseCertificateRequest(made)
		if err != nil || request.CheckSignature() != nil {
			t.Fatal(test.name, err, request.CheckSignature())
		}
		if _, err := client.Rotate(context.Background(), test.key.Label); err != nil {
			t.Fatal(err)
		}
		if _, err := x509.CreateCertificateRequest(nil, template, signer); !errors.Is(err, CodeNotLatestVersion) && !test.key.SignsDigests {
			t.Fatal(test.name, "a signer of an older version signs", err)
		} else if err == nil {
			t.Fatal(test.name, "a signer of an older version signs")
		}
	}
}

func TestAgainstTheServiceASignerHasTheFormsOfEd25519(t *testing.T) {
	client := service(t)
	signer := signerOf(t, client, NewKey{})
	public := signer.Public().(ed25519.PublicKey)
	message := []byte("a message")
	digest := sha512.Sum512(message)
	for _, options := range []*ed25519.Options{{}, {Hash: crypto.SHA512}, {Hash: crypto.SHA512, Context: "receipts"}} {
		signed := message
		if options.Hash != 0 {
			signed = digest[:]
		}
		signature, err := signer.Sign(nil, signed, options)
		if err != nil || ed25519.VerifyWithOptions(public, signed, signature, options) != nil {
			t.Fatal(options, err)
		}
		again, err := signer.SignMessage(nil, message, options)
		if err != nil || !bytes.Equal(again, signature) {
			t.Fatal(options, err)
		}
	}
	for _, options := range []*ed25519.Options{{Context: "ctx"}, {Hash: crypto.SHA256}} {
		if _, err := signer.Sign(nil, make([]byte, 32), options); err == nil {
			t.Fatal(options)
		}
	}
	if _, err := signer.Sign(nil, message, crypto.SHA512); err == nil {
		t.Fatal("a digest of another length is signed")
	}
	digests := signerOf(t, client, NewKey{Algorithm: "ecdsa-p256"})
	if _, err := digests.Sign(nil, make([]byte, 32), crypto.SHA256); err == nil {
		t.Fatal("a key that signs messages signs a digest")
	}
	other := NewKey{Algorithm: "ml-dsa-44", Label: fmt.Sprintf("no-signer-%d", os.Getpid())}
	if _, err := client.CreateKey(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Signer(context.Background(), other.Label); err == nil {
		t.Fatal("crypto has no ML-DSA")
	}
}

func signerOf(t *testing.T, client *Client, key NewKey) *Signer {
	t.Helper()
	made, err := client.CreateKey(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := client.Signer(context.Background(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// TestAgainstTheServiceTheCodesAreThoseOfItsDescription reads the table of codes beside the
// checkout.
func TestAgainstTheServiceTheCodesAreThoseOfItsDescription(t *testing.T) {
	description, err := os.ReadFile("../../spec/http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(description), "| code | status | retry |")
	table, _, _ = strings.Cut(table, "\n\n")
	var described []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
		described = append(described, row[1])
	}
	source, err := os.ReadFile("code.go")
	if err != nil {
		t.Fatal(err)
	}
	service, _, _ := strings.Cut(string(source), "// The codes of this client.")
	var ours []string
	for _, code := range regexp.MustCompile(`Code = "([a-z_]+)"`).FindAllStringSubmatch(service, -1) {
		ours = append(ours, code[1])
	}
	if len(described) < 50 || !slices.Equal(described, ours) {
		t.Fatalf("described: %v\nours: %v", described, ours)
	}
}

func TestAgainstTheServiceWithASchemeOfRSA(t *testing.T) {
	client, ctx := service(t), context.Background()
	key, err := client.CreateKey(ctx, NewKey{Label: fmt.Sprintf("go-rsa-%d", os.Getpid()), Algorithm: "rsa-2048"})
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("a message")
	schemes := []Scheme{{}, {Hash: HashSHA512}, {Padding: PaddingPKCS1v15}, {HashSHA384, PaddingPSS}}
	for i, scheme := range schemes {
		made, err := client.SignWith(ctx, key.ID, message, scheme)
		if err != nil {
			t.Fatal(scheme, err)
		}
		for j, other := range schemes {
			valid, err := client.VerifyWith(ctx, made.Key, message, made.Bytes, other)
			if err != nil || valid != (i == j) {
				t.Fatal(scheme, other, valid, err)
			}
		}
	}
	_, err = client.SignWith(ctx, key.ID, message, Scheme{Padding: "none"})
	if failure := new(Error); !errors.As(err, &failure) || failure.Code != CodeMalformedRequest {
		t.Fatal(err)
	}
}

// The service's settings name the key "client-jwt", with one audience.
func TestAgainstTheServiceAJWTIsSigned(t *testing.T) {
	client, ctx := service(t), context.Background()
	signed, err := client.SignJWT(ctx, "client-jwt", map[string]any{"sub": "job-7", "aud": "https://api.example.org"}, 30*time.Second)
	if err != nil || signed.Version != 1 || time.Until(signed.Expires) > 31*time.Second {
		t.Fatal(signed, err)
	}
	parts := strings.Split(signed.JWT, ".")
	if len(parts) != 3 {
		t.Fatal(parts)
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	if valid, err := client.Verify(ctx, signed.Key, []byte(parts[0]+"."+parts[1]), signature); !valid || err != nil {
		t.Fatal(valid, err)
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct{ Sub, Jti string }
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Sub != "job-7" || claims.Jti != signed.ID {
		t.Fatal(string(text), err)
	}
	// As long as the settings permit.
	if signed, err = client.SignJWT(ctx, "client-jwt", claimsFor("https://api.example.org"), 0); err != nil || time.Until(signed.Expires) < 31*time.Second {
		t.Fatal(signed, err)
	}
	if _, err := client.SignJWT(ctx, "client-jwt", claimsFor("https://other.example.org"), 0); !errors.Is(err, CodeForbidden) {
		t.Fatal(err)
	}
	if _, err := client.SignJWT(ctx, "client-jwt", claimsFor("https://api.example.org"), time.Millisecond); !errors.Is(err, CodeMalformedRequest) {
		t.Fatal(err)
	}
}

func claimsFor(audience string) map[string]any { return map[string]any{"aud": audience} }
