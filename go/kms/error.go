package kms

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// An Error is a service's refusal.
type Error struct {
	// Status is the HTTP status.
	Status int `json:"-"`
	// Code says what went wrong. Codes never change: see spec/http-api.md.
	Code string `json:"code"`
	// Message says it for people.
	Message string `json:"message"`
	// Retryable says whether the same request may succeed later.
	Retryable bool `json:"retryable"`
	// RequestID names the request in the service's log; it is empty for one item of a batch.
	RequestID string `json:"-"`
}

func (e *Error) Error() string {
	if e.RequestID == "" {
		return fmt.Sprintf("kms: %s (%s)", e.Message, e.Code)
	}
	return fmt.Sprintf("kms: %s (%s, request %s)", e.Message, e.Code, e.RequestID)
}

// Is compares by the code: errors.Is(err, &kms.Error{Code: "key_not_found"}).
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

func errorOf(response *http.Response, answer []byte) error {
	e := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	if json.Unmarshal(answer, e) != nil || e.Code == "" {
		// A proxy in between, for example.
		e.Code, e.Message = "http", "the service answered "+response.Status
		e.Retryable = response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusTooManyRequests
	}
	return e
}
