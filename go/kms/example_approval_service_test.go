package kms_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/bulla-dev/bulla/go/kms"
)

// exampleApprovals is a service with the keys "releases" and "orders", each use of which Ann must
// approve, for the examples: as much of the real one as they need.
type exampleApprovals struct {
	ann        ed25519.PublicKey
	request    []byte
	state      string
	statements []kms.ApprovalStatement
}

// newApprovalExampleClient starts such a service, and returns a client of it and Ann's key, which
// is not random.
func newApprovalExampleClient() (*kms.Client, ed25519.PrivateKey) {
	ann := ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32s", "ann")))
	service := &exampleApprovals{ann: ann.Public().(ed25519.PublicKey), state: "waiting"}
	client, err := kms.New(httptest.NewServer(service).URL)
	if err != nil {
		panic(err)
	}
	return client, ann
}

// exampleSubject is what the examples ask for: to sign the message "hello".
func exampleSubject() kms.ApprovalSubject {
	// The BLAKE3 digest, for example by github.com/bulla-dev/bulla/go/blake3.
	digest := "ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f"
	return kms.ApprovalSubject{Operation: kms.ApprovedSign, Digest: digest, Size: 5, Name: "hello.txt"}
}

func (s *exampleApprovals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Key       string          `json:"key"`
		Subject   json.RawMessage `json:"subject"`
		Reason    string          `json:"reason"`
		Approver  string          `json:"approver"`
		Signature []byte          `json:"signature"`
		Approval  string          `json:"approval"`
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			panic(err)
		}
	}
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	switch {
	case path == "approvals" && r.Method == http.MethodPost:
		s.request = fmt.Appendf(nil, `{"id":"a1","key":%q,"subject":%s,"requester":"ci","reason":%q,`+
			`"created":"2026-01-31T09:30:00.000Z","expires":"2026-01-31T10:30:00.000Z"}`, body.Key, body.Subject, body.Reason)
	case strings.HasPrefix(path, "keys/"):
		s.use(w, path, body.Approval)
		return
	case strings.HasSuffix(path, "/approve"), strings.HasSuffix(path, "/reject"):
		decision := path[strings.LastIndex(path, "/")+1:]
		signed := append([]byte("bulla approval\x00v1\x00"+decision+"\x00"), s.request...)
		if !ed25519.Verify(s.ann, signed, body.Signature) {
			panic("the signature is not one of Ann")
		}
		s.statements = append(s.statements, kms.ApprovalStatement{Approver: body.Approver, Decision: decision, Signature: body.Signature})
		s.state = map[string]string{"approve": "approved", "reject": "rejected"}[decision]
	}
	shown := map[string]any{
		"request": json.RawMessage(s.request), "state": s.state, "threshold": 1, "statements": s.statements,
	}
	if path == "approvals" && r.Method == http.MethodGet {
		shown = map[string]any{"approvals": []any{shown}}
	}
	if err := json.NewEncoder(w).Encode(shown); err != nil {
		panic(err)
	}
}

// use answers as the key does, which is used once.
func (s *exampleApprovals) use(w http.ResponseWriter, path, approval string) {
	if approval != "a1" || s.state != "approved" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"code":"approval_required","message":"each use of this key needs approvals","retryable":false}`)
		return
	}
	s.state = "used"
	made := map[string]any{"key": "local/files/ed25519/releases/v1", "version": 1, "signature": make([]byte, 64)}
	if strings.HasSuffix(path, "/decrypt") {
		made = map[string]any{"key": "local/files/aes-256-gcm/orders/v1", "version": 1, "plaintext": []byte("4 crates")}
	}
	if err := json.NewEncoder(w).Encode(made); err != nil {
		panic(err)
	}
}
