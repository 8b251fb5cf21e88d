package kms

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestADecryptionNamesItsApproval(t *testing.T) {
	client, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if fmt.Sprint(r.URL.Path, body) != "/api/v1/keys/orders/decryptmap[approval:id ciphertext:AQI= context:Aw==]" {
			t.Error(r.URL.Path, body)
		}
		fmt.Fprint(w, `{"key":"k","version":1,"plaintext":"aGVsbG8="}`)
	})
	options := &EncryptionOptions{Context: []byte{3}}
	found, err := client.DecryptApproved(context.Background(), "orders", []byte{1, 2}, "id", options)
	if err != nil || string(found.Bytes) != "hello" {
		t.Fatal(err)
	}
}

func TestARequestSaysForHowLongItCounts(t *testing.T) {
	client, _ := answering(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Seconds int `json:"expires_in_seconds"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Seconds != 90 {
			t.Error(body, err)
		}
		fmt.Fprint(w, `{"request":{"id":"i"},"state":"waiting","threshold":1,"statements":[]}`)
	})
	request, err := client.RequestApproval(context.Background(), NewApproval{Key: "k", ExpiresIn: 90 * time.Second})
	if err != nil || request.ID != "i" {
		t.Fatal(request, err)
	}
}

func TestAnApproversKeyIsOneOfEd25519(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	client, requests := answering(t, failing(500, "internal", false))
	if _, err := client.Approve(context.Background(), new(Approval), "ann", key); err == nil || requests.Load() != 0 {
		t.Fatal(err)
	}
}
