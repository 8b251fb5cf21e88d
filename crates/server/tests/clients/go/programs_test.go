package clients

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/getsops/sops/v3/hcvault"
	"github.com/hashicorp/go-kms-wrapping/v2"
	"github.com/hashicorp/go-kms-wrapping/wrappers/transit/v2"
	sigstore "github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/hashivault"
	tink "github.com/tink-crypto/tink-go-hcvault/v2/integration/hcvault"
	"gocloud.dev/secrets"
	_ "gocloud.dev/secrets/hashivault"

	"crypto/rand"
)

// cipher makes a key that encrypts and returns its name.
func cipher(t *testing.T, body data) string {
	t.Helper()
	name := "go-" + strings.ToLower(rand.Text())
	write(t, client(t), "transit/keys/"+name, body)
	return name
}

func TestEncryption(t *testing.T) {
	client := client(t)
	for _, kind := range []string{"aes128-gcm96", "aes256-gcm96", "chacha20-poly1305", "xchacha20-poly1305"} {
		name := cipher(t, data{"type": kind})
		made := write(t, client, "transit/encrypt/"+name, data{"plaintext": encode([]byte("text"))})
		write(t, client, "transit/keys/"+name+"/rotate", nil)
		made = write(t, client, "transit/rewrap/"+name, data{"ciphertext": made["ciphertext"]})
		if !strings.HasPrefix(made["ciphertext"].(string), "vault:v2:") {
			t.Fatal(made)
		}
		found := write(t, client, "transit/decrypt/"+name, data{"ciphertext": made["ciphertext"]})
		if string(decode(t, found["plaintext"].(string))) != "text" {
			t.Fatal(found)
		}
		_, err := client.Logical().Write("transit/decrypt/"+name, data{"ciphertext": "vault:v1:AAAA"})
		status(t, err, 400, "invalid ciphertext length")
	}
}

// TestSops is the master key of sops for `hc_vault_transit_uri`.
func TestSops(t *testing.T) {
	name := cipher(t, nil)
	key, err := hcvault.NewMasterKeyFromURI(fmt.Sprintf("%s/v1/transit/keys/%s", os.Getenv("VAULT_ADDR"), name))
	if err != nil {
		t.Fatal(err)
	}
	dataKey := []byte(rand.Text())
	if err := key.Encrypt(dataKey); err != nil {
		t.Fatal(err)
	}
	found, err := key.Decrypt()
	if err != nil || !bytes.Equal(found, dataKey) {
		t.Fatal(err)
	}
}

// TestGoKmsWrapping is the seal "transit" of Vault, Boundary, Consul and OpenBao.
func TestGoKmsWrapping(t *testing.T) {
	context := context.Background()
	wrapper := transit.NewWrapper()
	options := map[string]string{"mount_path": "transit/", "key_name": cipher(t, nil)}
	if _, err := wrapper.SetConfig(context, wrapping.WithConfigMap(options)); err != nil {
		t.Fatal(err)
	}
	sealed, err := wrapper.Encrypt(context, []byte("a root key"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := wrapper.Decrypt(context, sealed)
	if err != nil || string(found) != "a root key" {
		t.Fatal(err)
	}
	if key, err := wrapper.KeyId(context); err != nil || key != "v1" {
		t.Fatal(key, err)
	}
}

// TestGoCloud is a keeper of secrets of the Go Cloud Development Kit.
func TestGoCloud(t *testing.T) {
	context := context.Background()
	keeper, err := secrets.OpenKeeper(context, "hashivault://"+cipher(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	sealed, err := keeper.Encrypt(context, []byte("a secret"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := keeper.Decrypt(context, sealed)
	if err != nil || string(found) != "a secret" {
		t.Fatal(err)
	}
}

// TestTink is the remote AEAD of Tink.
func TestTink(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		var options []tink.AEADOption
		if legacy {
			options = append(options, tink.WithLegacyContextParamater())
		}
		aead, err := tink.NewAEAD("/transit/keys/"+cipher(t, data{"derived": legacy}), client(t).Logical(), options...)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := aead.Encrypt([]byte("text"), []byte("row 7"))
		if err != nil {
			t.Fatal(err)
		}
		found, err := aead.Decrypt(sealed, []byte("row 7"))
		if err != nil || string(found) != "text" {
			t.Fatal(err)
		}
		if found, err := aead.Decrypt(sealed, []byte("row 8")); err == nil {
			t.Fatalf("%q was decrypted with other associated data", found)
		}
	}
}

// TestSigstore is what cosign does with a key `hashivault://NAME`: sign-blob, public-key, verify-blob.
func TestSigstore(t *testing.T) {
	message := []byte("a release")
	for _, algorithm := range []string{"ecdsa-p256", "ecdsa-p384", "ecdsa-p521", "rsa-2048"} {
		key, err := hashivault.LoadSignerVerifier("hashivault://go-"+strings.ToLower(rand.Text()), crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		public, err := key.CreateKey(context.Background(), algorithm)
		if err != nil {
			t.Fatal(algorithm, err)
		}
		made, err := key.SignMessage(bytes.NewReader(message))
		if err != nil {
			t.Fatal(algorithm, err)
		}
		verifier, err := sigstore.LoadVerifier(public, crypto.SHA256)
		if err != nil {
			t.Fatal(algorithm, err)
		}
		if err := verifier.VerifySignature(bytes.NewReader(made), bytes.NewReader(message)); err != nil {
			t.Fatal(algorithm, err)
		}
		if verifier.VerifySignature(bytes.NewReader(made), strings.NewReader("another")) == nil {
			t.Fatal(algorithm, "the signature verifies for another message")
		}
	}
}
