//go:build service

package kms

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"testing"
)

// The BLAKE3 digest of "hello".
const helloDigest = "ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f"

func TestAgainstTheServiceUsesAreApproved(t *testing.T) {
	client, ctx, label := service(t), context.Background(), fmt.Sprintf("go-approved-%d", os.Getpid())
	rule := &ApprovalRule{Threshold: 2, MaxSeconds: 3600}
	people := map[string]ed25519.PrivateKey{}
	for _, name := range []string{"ann", "bob", "carol"} {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		people[name] = private
		rule.Approvers = append(rule.Approvers, Approver{name, public})
	}
	key, err := client.CreateKey(ctx, NewKey{Label: label, ApprovalRule: rule})
	if err != nil || key.ApprovalRule.Threshold != 2 || !key.ApprovalRule.Approvers[2].PublicKey.Equal(rule.Approvers[2].PublicKey) {
		t.Fatal(key, err)
	}
	message := []byte("hello")
	if _, err := client.Sign(ctx, label, message); !errors.Is(err, CodeApprovalRequired) {
		t.Fatal(err)
	}
	// The signed request has characters that JSON may write in two ways.
	subject := ApprovalSubject{ApprovedSign, helloDigest, uint64(len(message)), "é&.txt"}
	request, err := client.RequestApproval(ctx, NewApproval{Key: label, Subject: subject, Reason: "why \"not\" \\ é<&>"})
	if err != nil || request.State != "waiting" || request.Subject != subject || request.Threshold != 2 {
		t.Fatal(request, err)
	}
	if _, err := client.Approve(ctx, request, "ann", people["bob"]); !errors.Is(err, CodeForbidden) {
		t.Fatal("the key of another", err)
	}
	if _, err := client.Reject(ctx, request, "carol", people["carol"]); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Approve(ctx, request, "ann", people["ann"]); err != nil {
		t.Fatal(err)
	}
	if _, err := client.SignApproved(ctx, label, message, request.ID); !errors.Is(err, CodeApprovalRequired) {
		t.Fatal("one approval of two", err)
	}
	approved, err := client.Approve(ctx, request, "bob", people["bob"])
	if err != nil || approved.State != "approved" || len(approved.Statements) != 3 {
		t.Fatal(approved, err)
	}
	signature, err := client.SignApproved(ctx, label, message, request.ID)
	if err != nil || !ed25519.Verify(key.Versions[0].PublicKey, message, signature.Bytes) {
		t.Fatal(err)
	}
	if _, err := client.SignApproved(ctx, label, message, request.ID); !errors.Is(err, CodeApprovalRequired) {
		t.Fatal("a request is used once", err)
	}
	isListed := false
	for one, err := range client.Approvals(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		isListed = isListed || one.ID == request.ID
	}
	if !isListed {
		t.Fatal("the list does not have the request")
	}
	if used, err := client.Approval(ctx, request.ID); err != nil || used.State != "used" {
		t.Fatal(used, err)
	}
}
