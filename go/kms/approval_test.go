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

func TestApprovalsAreOneSequence(t *testing.T) {
	var asked []string
	page := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.String())
			fmt.Fprint(w, text)
		}
	}
	client, _ := answering(t,
		page(`{"approvals":[{"request":{"id":"a"}},{"request":{"id":"b"}}],"next":"b"}`),
		page(`{"approvals":[{"request":{"id":"c"}},{"request":{"id":3}},{"request":{"id":"d"}}],"next":null}`))
	var ids string
	var errs int
	for approval, err := range client.Approvals(context.Background()) {
		if err != nil {
			errs++
			continue
		}
		ids += approval.ID
	}
	// A request that the client does not understand ends the sequence.
	path := "/api/v1/approvals?"
	if ids != "abc" || errs != 1 || len(asked) != 2 || asked[0] != path+"limit=1000" || asked[1] != path+"after=b&limit=1000" {
		t.Fatal(ids, errs, asked)
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
