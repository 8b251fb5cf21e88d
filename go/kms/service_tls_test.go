//go:build service

package kms

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// inTLS reads a file of the folder BULLA_TLS, which has the addresses of the service and the
// certificates.
func inTLS(t *testing.T, name string) []byte {
	t.Helper()
	folder := os.Getenv("BULLA_TLS")
	if folder == "" {
		t.Fatal("BULLA_TLS names no folder")
	}
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// overTLS is a client of one of the service's addresses. It trusts one authority, and shows a
// certificate unless shown is empty.
func overTLS(t *testing.T, address, authority, shown string) (*Client, *atomic.Int32) {
	t.Helper()
	var addresses map[string]string
	if err := json.Unmarshal(inTLS(t, "addresses.json"), &addresses); err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(inTLS(t, authority+".pem")) {
		t.Fatal("there is no authority")
	}
	if shown != "" {
		pair, err := tls.X509KeyPair(inTLS(t, shown+".pem"), inTLS(t, shown+".key"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	var connections atomic.Int32
	transport := &http.Transport{TLSClientConfig: config}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := New(addresses[address], WithHTTPClient(&http.Client{Transport: transport}), WithRetries(3, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	return client, &connections
}

func TestAgainstTheServiceAClientCertificateIsACredential(t *testing.T) {
	client, _ := overTLS(t, "good", "authority", "client")
	message := []byte("a message")
	key, err := client.CreateKey(context.Background(), NewKey{})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := client.Sign(context.Background(), key.ID, message)
	if err != nil {
		t.Fatal(err)
	}
	if valid, err := client.Verify(context.Background(), signature.Key, message, signature.Bytes); !valid || err != nil {
		t.Fatal(valid, err)
	}
	nobody, _ := overTLS(t, "good", "authority", "")
	if _, err := nobody.Sign(context.Background(), key.ID, message); !errors.Is(err, CodeUnauthenticated) {
		t.Fatal(err)
	}
}

func TestAgainstTheServiceARefusedCertificateIsAnErrorThatIsNotRepeated(t *testing.T) {
	for _, test := range []struct{ name, address, authority, shown, message string }{
		{"the service's certificate is of another authority", "good", "other-authority", "client", "unknown authority"},
		{"it is for another host", "other-host", "authority", "client", "valid for 127.0.0.2"},
		{"it has expired", "expired", "authority", "client", "expired"},
		{"the client's certificate has expired", "good", "authority", "expired-client", "the service refused the client's certificate"},
	} {
		client, connections := overTLS(t, test.address, test.authority, test.shown)
		_, err := client.Sign(context.Background(), "k", nil)
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != "certificate" || refused.Retryable || !strings.Contains(refused.Message, test.message) {
			t.Errorf("%s: %v", test.name, err)
		}
		if connections.Load() != 1 {
			t.Errorf("%s: %d connections", test.name, connections.Load())
		}
		var untrusted *tls.CertificateVerificationError
		if isUntrusted := errors.As(err, &untrusted); isUntrusted != (test.shown == "client") {
			t.Errorf("%s: %v", test.name, isUntrusted)
		}
	}
}
