package kms

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// An ApprovalRule says who must approve each use of a key.
type ApprovalRule struct {
	// Threshold is how many people must approve.
	Threshold uint32     `json:"threshold"`
	Approvers []Approver `json:"approvers"`
	// MaxSeconds is for how long approvals count after the request was made.
	MaxSeconds uint64 `json:"max_seconds"`
	// RequesterMayApprove lets the person who made a request be one of those who approve it.
	RequesterMayApprove bool `json:"requester_may_approve,omitempty"`
}

// An Approver is a person whose approval counts.
type Approver struct {
	// Name is the name by which the service knows the person: the holder of their tokens.
	Name string `json:"name"`
	// PublicKey is the key that signs their approvals.
	PublicKey ed25519.PublicKey `json:"public_key"`
}

// An ApprovedOperation is what a key is to be used for.
type ApprovedOperation string

// What a request for approval may be about.
const (
	// ApprovedSign is for SignApproved.
	ApprovedSign ApprovedOperation = "sign"
	// ApprovedDecrypt is for DecryptApproved.
	ApprovedDecrypt ApprovedOperation = "decrypt"
)

// An ApprovalSubject is what a key is to be used for, once.
type ApprovalSubject struct {
	Operation ApprovedOperation `json:"operation"`
	// Digest is the BLAKE3 digest of the message or the ciphertext, 64 hexadecimal digits.
	Digest string `json:"digest"`
	// Size is its length in bytes.
	Size uint64 `json:"size"`
	// Name is the name of the file, if the message is one. Nobody can check it.
	Name string `json:"name,omitempty"`
}

// NewApproval is a request to make.
type NewApproval struct {
	Key     string
	Subject ApprovalSubject
	// Reason says why, in one line. Approvers and the audit log see it.
	Reason string
	// ExpiresIn is for how long the request counts, in whole seconds; if it is 0, as long as the
	// key's rule says.
	ExpiresIn time.Duration
}

// An Approval is a request for approval, and who has decided about it.
type Approval struct {
	ID string
	// Key is the key version to use.
	Key     string
	Subject ApprovalSubject
	// Requester is who made the request, and Reason their words.
	Requester, Reason string
	Created, Expires  time.Time
	// State is waiting, approved, rejected or used.
	State string
	// Threshold is how many people must approve.
	Threshold uint32
	// Statements are the decisions, the first one first.
	Statements []ApprovalStatement
	// What approvers sign, as the service wrote it.
	request []byte
}

// An ApprovalStatement is what an approver said.
type ApprovalStatement struct {
	Approver string `json:"approver"`
	// Decision is approve or reject.
	Decision  string `json:"decision"`
	Signature []byte `json:"signature"`
}

// approvalAnswer is an Approval as the service writes it.
type approvalAnswer struct {
	Request    json.RawMessage     `json:"request"`
	State      string              `json:"state"`
	Threshold  uint32              `json:"threshold"`
	Statements []ApprovalStatement `json:"statements"`
}

func (a approvalAnswer) read() (*Approval, error) {
	var request struct {
		ID        string          `json:"id"`
		Key       string          `json:"key"`
		Subject   ApprovalSubject `json:"subject"`
		Requester string          `json:"requester"`
		Reason    string          `json:"reason"`
		Created   time.Time       `json:"created"`
		Expires   time.Time       `json:"expires"`
	}
	var text bytes.Buffer
	err := json.Unmarshal(a.Request, &request)
	if err == nil {
		err = json.Compact(&text, a.Request)
	}
	if err != nil {
		return nil, fmt.Errorf("kms: the service's answer is not what this client expects: %w", err)
	}
	return &Approval{
		ID: request.ID, Key: request.Key, Subject: request.Subject,
		Requester: request.Requester, Reason: request.Reason,
		Created: request.Created, Expires: request.Expires,
		State: a.State, Threshold: a.Threshold, Statements: a.Statements,
		request: text.Bytes(),
	}, nil
}

// RequestApproval requests the approvals that one use of a key needs. When enough people have
// approved, the same caller uses the key: [Client.SignApproved], [Client.DecryptApproved].
func (c *Client) RequestApproval(ctx context.Context, request NewApproval) (*Approval, error) {
	body := struct {
		Key       string          `json:"key"`
		Subject   ApprovalSubject `json:"subject"`
		Reason    string          `json:"reason"`
		ExpiresIn *int64          `json:"expires_in_seconds,omitempty"`
	}{Key: request.Key, Subject: request.Subject, Reason: request.Reason}
	if request.ExpiresIn != 0 {
		seconds := int64(request.ExpiresIn / time.Second)
		body.ExpiresIn = &seconds
	}
	return c.approval(ctx, http.MethodPost, "/api/v1/approvals", body)
}

// Approvals lists the requests that have not expired, about keys that the caller may read, the
// oldest first. An error ends the sequence.
func (c *Client) Approvals(ctx context.Context) iter.Seq2[*Approval, error] {
	answers := list(ctx, c, "/api/v1/approvals", "", func(page approvalPage) ([]approvalAnswer, string) {
		return page.Approvals, page.Next
	})
	return func(yield func(*Approval, error) bool) {
		for answer, err := range answers {
			var approval *Approval
			if err == nil {
				approval, err = answer.read()
			}
			if !yield(approval, err) || err != nil {
				return
			}
		}
	}
}

type approvalPage struct {
	Approvals []approvalAnswer `json:"approvals"`
	Next      string           `json:"next"`
}

// Approval reads a request.
func (c *Client) Approval(ctx context.Context, id string) (*Approval, error) {
	return c.approval(ctx, http.MethodGet, approvalPath(id, ""), nil)
}

// Approve approves a request in the name of an approver, whose Ed25519 key signs the whole request.
// Compare Subject with a copy of your own before.
func (c *Client) Approve(ctx context.Context, request *Approval, approver string, key crypto.Signer) (*Approval, error) {
	return c.decide(ctx, "approve", request, approver, key)
}

// Reject rejects a request in the name of an approver, as Approve approves it.
func (c *Client) Reject(ctx context.Context, request *Approval, approver string, key crypto.Signer) (*Approval, error) {
	return c.decide(ctx, "reject", request, approver, key)
}

func (c *Client) decide(ctx context.Context, decision string, request *Approval, approver string, key crypto.Signer) (*Approval, error) {
	if _, ok := key.Public().(ed25519.PublicKey); !ok {
		return nil, fmt.Errorf("kms: the key of an approver is one of Ed25519, not %T", key.Public())
	}
	signed := append([]byte("bulla approval\x00v1\x00"+decision+"\x00"), request.request...)
	signature, err := key.Sign(nil, signed, crypto.Hash(0))
	if err != nil {
		return nil, fmt.Errorf("kms: the key of %s: %w", approver, err)
	}
	body := struct {
		Approver  string `json:"approver"`
		Signature []byte `json:"signature"`
	}{approver, signature}
	return c.approval(ctx, http.MethodPost, approvalPath(request.ID, "/"+decision), body)
}

// SignApproved signs a message as Sign does, with an approved request of this caller. A request is
// used once.
func (c *Client) SignApproved(ctx context.Context, key string, message []byte, approval string) (*Signature, error) {
	body := struct {
		Message  []byte `json:"message"`
		Approval string `json:"approval"`
	}{orEmpty(message), approval}
	signature := new(Signature)
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/sign"), body, signature, reads); err != nil {
		return nil, err
	}
	return signature, nil
}

// DecryptApproved decrypts a ciphertext as Decrypt does, with an approved request of this caller.
func (c *Client) DecryptApproved(ctx context.Context, key string, ciphertext []byte, approval string, options *EncryptionOptions) (*Plaintext, error) {
	body := struct {
		DecryptItem
		Approval string `json:"approval"`
	}{DecryptItem{orEmpty(ciphertext), options.orNone()}, approval}
	found := new(Plaintext)
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/decrypt"), body, found, reads); err != nil {
		return nil, err
	}
	return found, nil
}

func (c *Client) approval(ctx context.Context, method, path string, body any) (*Approval, error) {
	var answer approvalAnswer
	if err := c.call(ctx, method, path, body, &answer, reads); err != nil {
		return nil, err
	}
	return answer.read()
}

func approvalPath(id, part string) string {
	return "/api/v1/approvals/" + url.PathEscape(id) + part
}
