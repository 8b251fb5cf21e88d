package kms_test

import (
	"context"
	"crypto"
	"errors"
	"fmt"

	"github.com/bulla-dev/bulla/go/kms"
)

// exampleRequest asks for the signature of the message "hello".
func exampleRequest(client *kms.Client) *kms.Approval {
	wanted := kms.NewApproval{Key: "releases", Subject: exampleSubject(), Reason: "release 1.0"}
	request, err := client.RequestApproval(context.Background(), wanted)
	if err != nil {
		panic(err)
	}
	return request
}

// approve has Ann approve a request.
func approve(client *kms.Client, request *kms.Approval, ann crypto.Signer) {
	if _, err := client.Approve(context.Background(), request, "ann", ann); err != nil {
		panic(err)
	}
}

func ExampleClient_RequestApproval() {
	client, _ := newApprovalExampleClient()
	subject := exampleSubject() // the digest, the size and the name of hello.txt
	request, err := client.RequestApproval(context.Background(), kms.NewApproval{
		Key: "releases", Subject: subject, Reason: "release 1.0",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(request.ID, request.State, request.Threshold)
	// Output: a1 waiting 1
}

func ExampleClient_Approvals() {
	client, _ := newApprovalExampleClient()
	exampleRequest(client)
	for approval, err := range client.Approvals(context.Background()) {
		if err != nil {
			panic(err)
		}
		fmt.Println(approval.ID, approval.Requester, approval.Reason)
	}
	// Output: a1 ci release 1.0
}

func ExampleClient_Approval() {
	client, _ := newApprovalExampleClient()
	request := exampleRequest(client)
	read, err := client.Approval(context.Background(), request.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(read.State, read.Subject.Operation, read.Subject.Name, read.Subject.Size)
	// Output: waiting sign hello.txt 5
}

func ExampleClient_Approve() {
	client, ann := newApprovalExampleClient()
	request := exampleRequest(client)
	// Ann compares the request with her own copy of the file.
	if request.Subject != exampleSubject() {
		panic("another file")
	}
	approved, err := client.Approve(context.Background(), request, "ann", ann)
	if err != nil {
		panic(err)
	}
	fmt.Println(approved.State, approved.Statements[0].Approver)
	// Output: approved ann
}

func ExampleClient_Reject() {
	client, ann := newApprovalExampleClient()
	rejected, err := client.Reject(context.Background(), exampleRequest(client), "ann", ann)
	if err != nil {
		panic(err)
	}
	fmt.Println(rejected.State, rejected.Statements[0].Decision)
	// Output: rejected reject
}

func ExampleClient_SignApproved() {
	client, ann := newApprovalExampleClient()
	ctx, request := context.Background(), exampleRequest(client)
	_, err := client.SignApproved(ctx, "releases", []byte("hello"), request.ID)
	fmt.Println(errors.Is(err, kms.CodeApprovalRequired))
	approve(client, request, ann)
	signature, err := client.SignApproved(ctx, "releases", []byte("hello"), request.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(signature.Version, len(signature.Bytes))
	// Output:
	// true
	// 1 64
}

func ExampleClient_DecryptApproved() {
	client, ann := newApprovalExampleClient()
	ctx, ciphertext := context.Background(), []byte("a ciphertext of the key orders")
	// The BLAKE3 digest of the ciphertext.
	digest := "e60a1b6729fb48917f3438ed5cc12e2c4c2d60e71d7dab03a5942747c32cf6b3"
	subject := kms.ApprovalSubject{Operation: kms.ApprovedDecrypt, Digest: digest, Size: uint64(len(ciphertext))}
	request, err := client.RequestApproval(ctx, kms.NewApproval{Key: "orders", Subject: subject, Reason: "an audit"})
	if err != nil {
		panic(err)
	}
	approve(client, request, ann)
	found, err := client.DecryptApproved(ctx, "orders", ciphertext, request.ID, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", found.Bytes)
	// Output: 4 crates
}
