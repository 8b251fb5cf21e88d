package kms

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An Error is a service's refusal, or has one of this client's own codes: [CodeHTTP] or
// [CodeCertificate].
type Error struct {
	// Status is the HTTP status; 0 with [CodeCertificate].
	Status int `json:"-"`
	// Code says what went wrong.
	Code Code `json:"code"`
	// Message says it for people.
	Message string `json:"message"`
	// Retryable says whether the same request may succeed later.
	Retryable bool `json:"retryable"`
	// RequestID names the request in the service's log; it is empty for one item of a batch.
	RequestID string `json:"-"`

	// How long the answer asks to wait.
	pause time.Duration
	cause error
}

func (e *Error) Error() string {
	if e.RequestID == "" {
		return fmt.Sprintf("kms: %s (%s)", e.Message, string(e.Code))
	}
	return fmt.Sprintf("kms: %s (%s, request %s)", e.Message, string(e.Code), e.RequestID)
}

// Is compares with a [Code].
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap returns the error that caused this one, for example a *tls.CertificateVerificationError.
func (e *Error) Unwrap() error { return e.cause }

func errorOf(response *http.Response, answer []byte) error {
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"), pause: retryAfter(response.Header)}
	if json.Unmarshal(answer, e) != nil || e.Code == "" {
		// A proxy in between, for example.
		e.Code, e.Message = CodeHTTP, "a server that is not the service answered "+response.Status
		e.Retryable = response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusTooManyRequests
	}
	return e
}

// retryAfter is how long an answer asks to wait. The service writes seconds; a time, as some
// proxies write it, does not count.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// unanswered is the error of a request without an answer.
func unanswered(err error) error {
	certificate := func(message string) error {
		return &Error{Code: CodeCertificate, Message: message + ": " + err.Error(), cause: err}
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return certificate("the client does not trust the service's certificate")
	}
	// crypto/tls keeps the type of these errors to itself. Their texts name the certificate.
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Error(), "certificate") {
		return certificate("the service refused the client's certificate")
	}
	return fmt.Errorf("kms: %w", err)
}
