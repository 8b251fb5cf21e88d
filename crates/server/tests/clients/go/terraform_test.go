package clients

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/vault/api"
)

// terraform makes the client with which Terraform's provider "vault" works: it looks its token up,
// makes a child of it for 20 minutes, and has the namespace, if there is one. The provider itself
// is an internal package that Terraform starts.
func terraform(t *testing.T, namespace string) (asks *api.Client, child *api.SecretAuth) {
	t.Helper()
	asks = client(t)
	asks.SetCloneHeaders(true)
	asks.SetCloneToken(true)
	if _, err := asks.Auth().Token().LookupSelf(); err != nil {
		t.Fatal(err)
	}
	clone, err := asks.Clone()
	if err != nil {
		t.Fatal(err)
	}
	if namespace != "" {
		clone.SetNamespace(namespace)
		asks.SetNamespace(namespace)
	}
	renewable := false
	made, err := clone.Auth().Token().Create(&api.TokenCreateRequest{
		DisplayName: "terraform", TTL: "1200s", ExplicitMaxTTL: "1200s", Renewable: &renewable,
	})
	if err != nil {
		t.Fatal(err)
	}
	asks.SetToken(made.Auth.ClientToken)
	return asks, made.Auth
}

// TestTerraform sends what the resource "vault_transit_secret_backend_key" sends while a key is
// made, changed and destroyed, with a child token, without a namespace and in the tenant's.
func TestTerraform(t *testing.T) {
	for _, namespace := range []string{"", "local"} {
		asks, child := terraform(t, namespace)
		if child.LeaseDuration != 1200 || child.Renewable || child.Accessor == "" {
			t.Fatalf("%+v", child)
		}
		found, err := asks.Auth().Token().LookupSelf()
		if err != nil || found.Data["accessor"] != child.Accessor {
			t.Fatal(found, err)
		}
		health, err := asks.Sys().SealStatus()
		if err != nil || health.Sealed {
			t.Fatal(health, err)
		}
		path := fmt.Sprintf("transit/keys/go-terraform-%s", strings.ToLower(rand.Text()))
		read := func() data {
			t.Helper()
			secret, err := asks.Logical().Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if secret == nil {
				return nil
			}
			for _, number := range []string{"latest_version", "min_available_version", "min_decryption_version", "min_encryption_version"} {
				if _, err := secret.Data[number].(json.Number).Int64(); err != nil {
					t.Fatal(number, err)
				}
			}
			return secret.Data
		}
		write(t, asks, path, data{
			"convergent_encryption": false, "derived": false, "type": "aes256-gcm96",
			"auto_rotate_period": 0, "key_size": 0,
		})
		// With the provider's own slip in a name.
		config := data{
			"min_decryption_version": 1, "min_encryption_versoin": 0, "deletion_allowed": false,
			"exportable": false, "allow_plaintext_backup": false, "auto_rotate_period": 0,
		}
		write(t, asks, path+"/config", config)
		if key := read(); key["type"] != "aes256-gcm96" || key["deletion_allowed"] != false || len(key["keys"].(data)) != 1 {
			t.Fatal(key)
		}
		if _, err := asks.Logical().Delete(path); err == nil {
			t.Fatal("the key was destroyed, although this was not allowed")
		}
		config["deletion_allowed"] = true
		config["auto_rotate_period"] = 86400
		write(t, asks, path+"/config", config)
		if key := read(); key["deletion_allowed"] != true || key["auto_rotate_period"].(json.Number) != "86400" {
			t.Fatal(key)
		}
		if _, err := asks.Logical().Delete(path); err != nil {
			t.Fatal(err)
		}
		if key := read(); key != nil {
			t.Fatal(key)
		}
		if err := asks.Auth().Token().RevokeSelf(""); err != nil {
			t.Fatal(err)
		}
		if _, err := asks.Auth().Token().LookupSelf(); err == nil {
			t.Fatal("a revoked child works")
		}
	}
}

// TestTerraformElsewhere shows that a namespace of others is one where nothing is permitted.
func TestTerraformElsewhere(t *testing.T) {
	asks := client(t)
	asks.SetNamespace("somebody-else")
	_, err := asks.Auth().Token().Create(&api.TokenCreateRequest{TTL: "1200s"})
	if answer, ok := err.(*api.ResponseError); !ok || answer.StatusCode != 403 {
		t.Fatal(err)
	}
}
