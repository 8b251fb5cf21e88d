// Package kms is a client of bulla's key management service (bulla serve). It signs, verifies,
// encrypts, decrypts and makes message authentication codes (MACs) with keys that never leave the
// service.
//
//	client, err := kms.New("http://127.0.0.1:8200", kms.WithToken(token))
//	signature, err := client.Sign(ctx, "invoices", message)
//	valid, err := client.Verify(ctx, signature.Key, message, signature.Bytes)
//
// Encrypt and Decrypt are for values of up to 64 MiB, with a key whose algorithm encrypts, and
// GenerateDataKey is for more data. MAC and VerifyMAC are for keys that make MACs, and
// DeriveSharedSecret is for keys of ECDH.
//
// A [Signer] is a crypto.Signer: what crypto/x509 and other packages sign with.
//
// A key is named by its label ("invoices"), by its id (TENANT/PURPOSE/ALGORITHM/UUID), or by the id
// of one version, as Signature.Key has it. All methods may be called by many goroutines at
// once. Many messages are signed fastest by SignMany, or by a Batcher, which puts concurrent calls
// together.
//
// Lists are sequences: a page is read when the loop asks for it.
//
//	for key, err := range client.Keys(ctx) {
//
// # Repetitions
//
// A call repeats its request, at most as often as [WithRetries] says, in these cases:
//
//   - The service refused it and says that a repetition may help ([Error.Retryable]). It changed
//     nothing then.
//   - There was no answer, or a proxy answered 429 or 503 instead of the service. Each request that
//     changes something has a key of its own (Idempotency-Key), by which the service recognizes the
//     repetition: it makes no change twice.
//
// The pause is at least as long as the answer asks for (Retry-After). A call that would have to
// pause for more than 30 seconds, or beyond the deadline of its context, fails instead. If the
// context ends during a pause, the error has both causes. A certificate that one side refuses stays
// refused, so that the request is not repeated.
package kms

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The longest answer that is read, in bytes. A batch of 10,000 post-quantum signatures has about 80
// MB.
const maxAnswer = 256 << 20

// The longest pause for which an answer may ask.
const maxPause = 30 * time.Second

// A Client talks to one service.
type Client struct {
	base    string
	token   string
	logins  *logins
	http    *http.Client
	retries int
	backoff time.Duration
}

// An Option changes how a Client works.
type Option func(*Client)

// WithToken sends this capability token with each request. A program without one logs in:
// [WithLogin].
func WithToken(token string) Option {
	return func(c *Client) { c.token = strings.TrimSpace(token) }
}

// WithHTTPClient uses this HTTP client. Its Timeout bounds each attempt. The TLSClientConfig of its
// http.Transport says which authorities count (RootCAs) and which client certificate is shown
// (Certificates).
func WithHTTPClient(client *http.Client) Option {
	return func(c *Client) { c.http = client }
}

// WithRetries repeats a request at most this many times (3 by default; 0 for never). The first
// pause has a random length of up to backoff (50 ms by default), and each further one up to twice
// as much.
func WithRetries(retries int, backoff time.Duration) Option {
	return func(c *Client) { c.retries, c.backoff = retries, backoff }
}

// New makes a client of the service at an address: http://HOST:PORT, https://HOST:PORT, or
// unix:/PATH for a Unix socket. It does not connect yet.
func New(address string, options ...Option) (*Client, error) {
	c := &Client{retries: 3, backoff: 50 * time.Millisecond}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		c.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(path, "//"))
		}
	} else {
		parsed, err := url.Parse(address)
		if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
			return nil, fmt.Errorf("kms: %q is not the address of a service: write http://HOST:PORT, https://HOST:PORT or unix:/PATH", address)
		}
		c.base = strings.TrimSuffix(address, "/")
	}
	c.http = &http.Client{Transport: transport}
	for _, option := range options {
		option(c)
	}
	return c, nil
}

// What a request does.
type effect bool

const (
	// It changes nothing.
	reads effect = false
	// It changes something: the service must recognize its repetitions.
	changes effect = true
)

// call makes a request, again where that helps, and reads its answer into result unless that is
// nil.
func (c *Client) call(ctx context.Context, method, path string, body, result any, does effect) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return fmt.Errorf("kms: %w", err)
		}
	}
	idempotencyKey := ""
	if does == changes {
		idempotencyKey = rand.Text()
	}
	pause := c.backoff
	for attempt := 0; ; attempt++ {
		err := c.attempt(ctx, method, path, idempotencyKey, content, result)
		if err == nil || attempt >= c.retries || !mayRepeat(err) || errors.Is(err, ctx.Err()) {
			return err
		}
		if ctx.Err() != nil {
			return ended(ctx, err)
		}
		asked := askedPause(err)
		wait := asked + mathrand.N(max(pause, 1))
		if deadline, ok := ctx.Deadline(); asked > maxPause || ok && time.Until(deadline) < wait {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ended(ctx, err)
		}
		pause *= 2
	}
}

// ended says why a call ends after a failed attempt that it would have repeated.
func ended(ctx context.Context, err error) error {
	return fmt.Errorf("kms: %w; the last attempt failed: %w", context.Cause(ctx), err)
}

// mayRepeat says whether a repetition may help. The service says so of its own errors; without an
// answer of the service, it may.
func mayRepeat(err error) bool {
	var answered *Error
	return !errors.As(err, &answered) || answered.Retryable
}

// askedPause is how long the answer asked to wait.
func askedPause(err error) time.Duration {
	var answered *Error
	if errors.As(err, &answered) {
		return answered.pause
	}
	return 0
}

func (c *Client) attempt(ctx context.Context, method, path, idempotencyKey string, content []byte, result any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("kms: %w", err)
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	token, err := c.bearer(ctx, path)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return unanswered(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("kms: cannot read the answer: %w", err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return errorOf(response, answer)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return fmt.Errorf("kms: the service's answer is not what this client expects: %w", err)
	}
	return nil
}

// keyPath is the path of a key, with a part of it behind.
func keyPath(key, part string) string {
	return "/api/v1/keys/" + url.PathEscape(key) + part
}
