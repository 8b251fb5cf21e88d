package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// ask sends a request to the service's own interface, and reads its answer.
func ask(t *testing.T, method, path string, body, answer any) {
	t.Helper()
	sent, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(method, os.Getenv("VAULT_ADDR")+path, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+os.Getenv("VAULT_TOKEN"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s %v", method, path, response.StatusCode, text, err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// TestJWT verifies JWTs of the service with go-jose, by the keys that it shows to everybody.
func TestJWT(t *testing.T) {
	var made, metadata struct {
		JWT     string
		Issuer  string
		JWKSURI string `json:"jwks_uri"`
	}
	claims := data{"claims": data{"sub": "job-7", "aud": "https://api.example.org"}}
	ask(t, "POST", "/api/v1/keys/go-jwt/sign-jwt", claims, &made)
	ask(t, "GET", "/.well-known/openid-configuration", nil, &metadata)
	if metadata.Issuer != "https://keys.example.org" || metadata.JWKSURI != metadata.Issuer+"/.well-known/jwks.json" {
		t.Fatalf("%+v", metadata)
	}
	var keys jose.JSONWebKeySet
	ask(t, "GET", "/.well-known/jwks.json", nil, &keys)

	verify := func(text string, at time.Time) error {
		token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			return err
		}
		named := keys.Key(token.Headers[0].KeyID)
		if len(named) != 1 {
			return fmt.Errorf("%d keys have the name", len(named))
		}
		var claims jwt.Claims
		if err := token.Claims(named[0].Key, &claims); err != nil {
			return err
		}
		if claims.Subject != "job-7" || claims.ID == "" {
			return fmt.Errorf("%+v", claims)
		}
		expected := jwt.Expected{Issuer: metadata.Issuer, AnyAudience: jwt.Audience{"https://api.example.org"}, Time: at}
		return claims.ValidateWithLeeway(expected, 0)
	}
	if err := verify(made.JWT, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := verify(made.JWT, time.Now().Add(2*time.Minute)); err != jwt.ErrExpired {
		t.Fatalf("expired: %v", err)
	}
	at := strings.LastIndex(made.JWT, ".") + 1
	flipped := "A"
	if made.JWT[at] == 'A' {
		flipped = "B"
	}
	if err := verify(made.JWT[:at]+flipped+made.JWT[at+1:], time.Now()); err == nil {
		t.Fatal("a damaged JWT was accepted")
	}
}
