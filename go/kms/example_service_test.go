package kms_test

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/bulla-dev/bulla/go/kms"
)

// exampleKey is a key of the service of the examples.
type exampleKey struct {
	id, label, state string
	versions         []ed25519.PrivateKey
}

// exampleService is a service with keys of Ed25519, for the examples: as much of the real one as
// they need. Its keys are not random, so that the examples print the same each time.
type exampleService struct {
	keys []*exampleKey
}

// newExampleClient starts a service with the key "invoices", and returns a client of it.
func newExampleClient() *kms.Client {
	service := new(exampleService)
	service.create("invoices", "ed25519")
	server := httptest.NewServer(service)
	client, err := kms.New(server.URL)
	if err != nil {
		panic(err)
	}
	return client
}

func (s *exampleService) create(label, algorithm string) *exampleKey {
	if algorithm == "" {
		algorithm = "ed25519"
	}
	id := fmt.Sprintf("local/files/%s/0197a5c0-4c1e-7e0b-9a37-%012d", algorithm, len(s.keys)+1)
	if algorithm != "ed25519" {
		id = fmt.Sprintf("local/files/%s/%s", algorithm, label)
	}
	key := &exampleKey{id: id, label: label, state: "enabled"}
	s.keys = append(s.keys, key)
	key.rotate()
	return key
}

func (k *exampleKey) rotate() {
	seed := fmt.Sprintf("%-32.32s", fmt.Sprint(len(k.versions), k.label, k.id))
	k.versions = append(k.versions, ed25519.NewKeyFromSeed([]byte(seed)))
}

// version is the id of a version.
func (k *exampleKey) version(number int) string {
	return fmt.Sprintf("%s/v%d", k.id, number)
}

// view is the key in JSON.
func (k *exampleKey) view() map[string]any {
	versions := make([]map[string]any, len(k.versions))
	for i, private := range k.versions {
		versions[i] = map[string]any{
			"id": fmt.Sprintf("%s/v%d", k.id, i+1), "version": i + 1, "state": "usable", "origin": "generated",
			"public_key": private.Public(), "created": time.Date(2026, 1, 31, 9, 30, i, 0, time.UTC),
		}
	}
	return map[string]any{
		"key": k.id, "label": k.label, "algorithm": "ed25519", "state": k.state, "head": len(versions), "versions": versions,
	}
}

// find returns a key and one of its versions, the latest unless the name has another.
func (s *exampleService) find(name string) (*exampleKey, int) {
	for _, key := range s.keys {
		if name == key.label || name == key.id {
			return key, len(key.versions)
		}
		for i := range key.versions {
			if name == fmt.Sprintf("%s/v%d", key.id, i+1) {
				return key, i + 1
			}
		}
	}
	return nil, 0
}

// plaintext is bytes, or true where a data key is asked for.
type plaintext []byte

func (p *plaintext) UnmarshalJSON(text []byte) error {
	if string(text) == "true" || string(text) == "false" {
		return nil
	}
	return json.Unmarshal(text, (*[]byte)(p))
}

// exampleItem is the body of a request, or one item of it.
type exampleItem struct {
	Label          string        `json:"label"`
	Algorithm      string        `json:"algorithm"`
	Enabled        bool          `json:"enabled"`
	Key            string        `json:"key"`
	Message        []byte        `json:"message"`
	Digest         []byte        `json:"digest"`
	Signature      []byte        `json:"signature"`
	Plaintext      plaintext     `json:"plaintext"`
	AssociatedData []byte        `json:"associated_data"`
	Ciphertext     []byte        `json:"ciphertext"`
	MAC            []byte        `json:"mac"`
	Version        int           `json:"version"`
	Bytes          int           `json:"bytes"`
	Items          []exampleItem `json:"items"`
}

func (s *exampleService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body exampleItem
	// A request without a body has no fields.
	_ = json.NewDecoder(r.Body).Decode(&body)
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	name, verb := strings.TrimPrefix(path, "keys/"), ""
	for _, known := range append([]string{"rotate", "sign", "verify", "sign-digest"}, symmetricVerbs...) {
		for _, suffix := range []string{known, known + "/batch"} {
			if cut, ok := strings.CutSuffix(name, "/"+suffix); ok {
				name, verb = cut, suffix
			}
		}
	}
	answer := s.answer(r.Method, path, name, verb, body)
	if refusal, ok := answer["error"]; ok {
		w.WriteHeader(http.StatusNotFound)
		answer = refusal.(map[string]any)
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

func (s *exampleService) answer(method, path, name, verb string, body exampleItem) map[string]any {
	switch {
	case path == "keys" && method == http.MethodPost:
		return s.create(body.Label, body.Algorithm).view()
	case path == "keys":
		views := make([]map[string]any, len(s.keys))
		for i, key := range s.keys {
			views[i] = key.view()
		}
		return map[string]any{"keys": views}
	case path == "random":
		return map[string]any{"random": make([]byte, body.Bytes)}
	case path == "audit-log/entries":
		entry := map[string]any{"number": 0, "time": time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC), "who": "app", "operation": "create", "result": "ok"}
		return map[string]any{"entries": []any{entry}}
	case path == "sign" || path == "verify":
		results := make([]map[string]any, len(body.Items))
		for i, item := range body.Items {
			results[i] = s.use(item.Key, path, item)
		}
		return map[string]any{"results": results}
	case strings.HasSuffix(verb, "/batch"):
		results := make([]map[string]any, len(body.Items))
		for i, item := range body.Items {
			results[i] = s.useSymmetric(name, verb, item)
		}
		return map[string]any{"results": results}
	case slices.Contains(symmetricVerbs, verb):
		return s.useSymmetric(name, verb, body)
	case verb == "rotate":
		key, _ := s.find(name)
		key.rotate()
		return key.view()
	case verb != "":
		return s.use(name, verb, body)
	}
	key, _ := s.find(name)
	if key == nil {
		return refused("key_not_found", "the tenant local has no key "+name)
	}
	if method == http.MethodPatch {
		key.state = map[bool]string{true: "enabled", false: "disabled"}[body.Enabled]
	}
	return key.view()
}

// use signs or verifies one message.
func (s *exampleService) use(name, verb string, item exampleItem) map[string]any {
	key, version := s.find(name)
	switch {
	case key == nil:
		return refused("key_not_found", "the tenant local has no key "+name)
	case verb == "verify":
		public := key.versions[version-1].Public().(ed25519.PublicKey)
		return map[string]any{"valid": ed25519.Verify(public, item.Message, item.Signature)}
	case key.state != "enabled":
		return refused("key_disabled", "the key "+name+" is disabled")
	}
	private, options, message := key.versions[version-1], new(ed25519.Options), item.Message
	if verb == "sign-digest" {
		options.Hash, message = crypto.SHA512, item.Digest
	}
	signature, err := private.Sign(nil, message, options)
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"key": fmt.Sprintf("%s/v%d", key.id, version), "version": version, "signature": base64.StdEncoding.EncodeToString(signature),
	}
}

func refused(code, message string) map[string]any {
	return map[string]any{"error": map[string]any{"code": code, "message": message, "retryable": false}}
}
