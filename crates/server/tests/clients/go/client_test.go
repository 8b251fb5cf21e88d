// Package clients runs Vault's own client for Go, as it is, against a running `bulla serve`:
// VAULT_ADDR and VAULT_TOKEN name it.
package clients

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/vault/api"
)

type data = map[string]any

// client reads VAULT_ADDR and VAULT_TOKEN, as Vault's command line does.
func client(t *testing.T) *api.Client {
	t.Helper()
	config := api.DefaultConfig()
	if config.Error != nil {
		t.Fatal(config.Error)
	}
	client, err := api.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if client.Token() == "" {
		t.Fatal("VAULT_TOKEN is not set")
	}
	return client
}

func write(t *testing.T, client *api.Client, path string, body data) data {
	t.Helper()
	secret, err := client.Logical().Write(path, body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if secret == nil {
		return nil
	}
	return secret.Data
}

// key makes a key and returns its name and its public key.
func key(t *testing.T, client *api.Client, body data) (string, string) {
	t.Helper()
	name := fmt.Sprintf("go-%s", strings.ToLower(rand.Text()))
	write(t, client, "transit/keys/"+name, body)
	secret, err := client.Logical().Read("transit/keys/" + name)
	if err != nil {
		t.Fatal(err)
	}
	version := secret.Data["keys"].(data)["1"].(data)
	return name, version["public_key"].(string)
}

func encode(bytes []byte) string {
	return base64.StdEncoding.EncodeToString(bytes)
}

func decode(t *testing.T, text string) []byte {
	t.Helper()
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// signature returns the bytes of `vault:v1:...`.
func signature(t *testing.T, signed data) []byte {
	t.Helper()
	text, found := strings.CutPrefix(signed["signature"].(string), "vault:v1:")
	if !found {
		t.Fatalf("%v", signed)
	}
	return decode(t, text)
}

// status checks that an error has this status and these words.
func status(t *testing.T, err error, code int, words string) {
	t.Helper()
	var response *api.ResponseError
	if !errors.As(err, &response) {
		t.Fatalf("%v is no answer", err)
	}
	if response.RawError || response.StatusCode != code || !strings.Contains(strings.Join(response.Errors, "|"), words) {
		t.Fatalf("%d %q, not %d %q", response.StatusCode, response.Errors, code, words)
	}
}

func TestEd25519(t *testing.T) {
	client := client(t)
	name, public := key(t, client, data{"type": "ed25519"})
	message := []byte("a message")
	signed := write(t, client, "transit/sign/"+name, data{"input": encode(message)})
	if !ed25519.Verify(decode(t, public), message, signature(t, signed)) {
		t.Fatal("crypto/ed25519 refuses the signature")
	}
	for input, valid := range map[string]bool{"a message": true, "another": false} {
		verified := write(t, client, "transit/verify/"+name, data{"input": encode([]byte(input)), "signature": signed["signature"]})
		if verified["valid"] != valid {
			t.Fatalf("%q: %v", input, verified)
		}
	}
}

func TestEd25519ph(t *testing.T) {
	client := client(t)
	name, public := key(t, client, data{"type": "ed25519"})
	digest := sha512.Sum512([]byte("a message"))
	for _, context := range []string{"", "invoices"} {
		body := data{"input": encode(digest[:]), "prehashed": true, "hash_algorithm": "sha2-512", "signature_context": encode([]byte(context))}
		signed := write(t, client, "transit/sign/"+name, body)
		options := ed25519.Options{Hash: crypto.SHA512, Context: context}
		if err := ed25519.VerifyWithOptions(decode(t, public), digest[:], signature(t, signed), &options); err != nil {
			t.Fatalf("context %q: %v", context, err)
		}
		body["signature"] = signed["signature"]
		if verified := write(t, client, "transit/verify/"+name, body); verified["valid"] != true {
			t.Fatalf("context %q: %v", context, verified)
		}
	}
}

func TestECDSA(t *testing.T) {
	client := client(t)
	name, text := key(t, client, data{"type": "ecdsa-p256"})
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Fatalf("not PEM: %q", text)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public := parsed.(*ecdsa.PublicKey)
	for number := range 20 {
		message := fmt.Appendf(nil, "message %d", number)
		digest := sha256.Sum256(message)
		// The hash function in the path, as some libraries send it.
		signed := write(t, client, "transit/sign/"+name+"/sha2-256", data{"input": encode(message)})
		if !ecdsa.VerifyASN1(public, digest[:], signature(t, signed)) {
			t.Fatal("crypto/ecdsa refuses the signature")
		}
		verified := write(t, client, "transit/verify/"+name+"/sha2-256", data{"input": encode(message), "signature": signed["signature"]})
		if verified["valid"] != true {
			t.Fatal(verified)
		}
	}
}

func TestPostQuantum(t *testing.T) {
	client := client(t)
	for _, body := range []data{{"type": "ml-dsa", "parameter_set": "65"}, {"type": "mldsa-44"}} {
		name, _ := key(t, client, body)
		signed := write(t, client, "transit/sign/"+name, data{"input": encode([]byte("x"))})
		verified := write(t, client, "transit/verify/"+name, data{"input": encode([]byte("x")), "signature": signed["signature"]})
		if verified["valid"] != true {
			t.Fatalf("%v: %v", body, verified)
		}
	}
}

func TestBatch(t *testing.T) {
	client := client(t)
	name, public := key(t, client, data{"type": "ed25519"})
	var items []any
	for number := range 300 {
		items = append(items, data{"input": encode(fmt.Appendf(nil, "%d", number)), "reference": fmt.Sprint(number)})
	}
	signed := write(t, client, "transit/sign/"+name, data{"batch_input": append(slices.Clone(items), data{})})
	results := signed["batch_results"].([]any)
	for number, item := range items {
		result := results[number].(data)
		if result["reference"] != fmt.Sprint(number) {
			t.Fatalf("item %d: %v", number, result)
		}
		if !ed25519.Verify(decode(t, public), fmt.Appendf(nil, "%d", number), signature(t, result)) {
			t.Fatalf("crypto/ed25519 refuses the signature of item %d", number)
		}
		item.(data)["signature"] = result["signature"]
	}
	if last := results[len(items)].(data); last["error"] != "missing input" {
		t.Fatal(last)
	}
	items[7].(data)["input"] = encode([]byte("another"))
	verified := write(t, client, "transit/verify/"+name, data{"batch_input": items})
	for number, result := range verified["batch_results"].([]any) {
		if result.(data)["valid"] != (number != 7) {
			t.Fatalf("item %d: %v", number, result)
		}
	}
}

func TestKeys(t *testing.T) {
	client := client(t)
	name, _ := key(t, client, data{"type": "ed25519"})
	list, err := client.Logical().List("transit/keys")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(list.Data["keys"].([]any), any(name)) {
		t.Fatalf("%s is not in %v", name, list.Data)
	}
	write(t, client, "transit/keys/"+name+"/rotate", nil)
	// Text, as Vault's command line sends it.
	configured := write(t, client, "transit/keys/"+name+"/config", data{"min_decryption_version": "2", "deletion_allowed": "true"})
	if fmt.Sprintf("%v %v", configured["min_decryption_version"], configured["latest_version"]) != "2 2" {
		t.Fatal(configured)
	}
	trimmed := write(t, client, "transit/keys/"+name+"/trim", data{"min_available_version": 2})
	if fmt.Sprint(trimmed["min_available_version"]) != "2" {
		t.Fatal(trimmed)
	}
	if _, err := client.Logical().Delete("transit/keys/" + name); err != nil {
		t.Fatal(err)
	}
	// What is not there is neither a secret nor an error for this client.
	if secret, err := client.Logical().Read("transit/keys/" + name); secret != nil || err != nil {
		t.Fatalf("%v, %v", secret, err)
	}
	again, err := client.Logical().Write("transit/keys/"+name, data{"type": "ed25519"})
	if err != nil || len(again.Warnings) != 0 {
		t.Fatalf("%v, %v", again, err)
	}
	again, err = client.Logical().Write("transit/keys/"+name, data{"type": "ed25519"})
	if err != nil || len(again.Warnings) != 1 {
		t.Fatalf("%v, %v", again, err)
	}
}

func TestErrors(t *testing.T) {
	client := client(t)
	_, err := client.Logical().Write("transit/sign/go-nobody", data{"input": ""})
	status(t, err, http.StatusBadRequest, "signing key not found")
	_, err = client.Logical().Write("transit/decrypt/go-nobody", data{"ciphertext": "vault:v1:AAAA"})
	status(t, err, http.StatusBadRequest, "encryption key not found")
	_, err = client.Logical().Write("transit/cmac/go-nobody", data{"input": ""})
	status(t, err, http.StatusBadRequest, "no keys for CMAC")
	_, err = client.Logical().Write("transit/keys/UPPER", data{"type": "ed25519"})
	status(t, err, http.StatusBadRequest, "a-z")
	for _, token := range []string{"", "nonsense"} {
		stranger, err := client.Clone()
		if err != nil {
			t.Fatal(err)
		}
		stranger.SetToken(token)
		_, err = stranger.Logical().Write("transit/sign/go-nobody", data{"input": ""})
		status(t, err, http.StatusForbidden, "permission denied")
	}
}

func TestSystem(t *testing.T) {
	client := client(t)
	health, err := client.Sys().Health()
	if err != nil || !health.Initialized || health.Sealed || health.Standby || health.Version == "" {
		t.Fatalf("%+v, %v", health, err)
	}
	seal, err := client.Sys().SealStatus()
	if err != nil || seal.Sealed || !seal.Initialized {
		t.Fatalf("%+v, %v", seal, err)
	}
	mounts, err := client.Sys().ListMounts()
	if err != nil || mounts["transit/"].Type != "transit" {
		t.Fatalf("%v, %v", mounts, err)
	}
	token, err := client.Auth().Token().LookupSelf()
	if err != nil {
		t.Fatal(err)
	}
	ttl, err := token.TokenTTL()
	if err != nil || ttl <= 0 {
		t.Fatalf("%v, %v", ttl, err)
	}
	policies, err := token.TokenPolicies()
	if err != nil || !slices.Contains(policies, "sign") {
		t.Fatalf("%v, %v", policies, err)
	}
	if renewable, err := token.TokenIsRenewable(); err != nil || renewable {
		t.Fatalf("%v, %v", renewable, err)
	}
}
