package kms

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A Login is what the service gave for a JWT. Its text does not show the token.
type Login struct {
	// Token is for [WithToken]. The service does not keep it.
	Token string `json:"token"`
	// RevocationID revokes the token, and all tokens that are made from it.
	RevocationID string    `json:"revocation_id"`
	Expires      time.Time `json:"expires"`
	// Holder is the caller's name in the audit log.
	Holder string `json:"holder"`
	// Operations are what the token permits.
	Operations []string `json:"operations"`
}

// String names the holder, and does not show the token.
func (l Login) String() string { return fmt.Sprintf("login of %s until %s", l.Holder, l.Expires) }

// GoString does not show the token either.
func (l Login) GoString() string { return l.String() }

const loginPath = "/api/v1/login"

// LogIn gives a JWT of the platform on which the program runs for a token. The service's
// configuration says which JWTs give which role. The client goes on with its own token:
// [WithLogin] is for clients that log in by themselves.
func (c *Client) LogIn(ctx context.Context, role, jwt string) (*Login, error) {
	body := struct {
		Role string `json:"role"`
		JWT  string `json:"jwt"`
	}{role, strings.TrimSpace(jwt)}
	login := new(Login)
	if err := c.call(ctx, http.MethodPost, loginPath, body, login, reads); err != nil {
		return nil, err
	}
	return login, nil
}

// WithLogin makes the client log in with a JWT for this role before its first request, and again
// when three quarters of the token's lifetime have passed. jwt returns a JWT that is valid now, for
// example the content of the file that Kubernetes renews:
//
//	kms.WithLogin("release", func(context.Context) (string, error) {
//		jwt, err := os.ReadFile("/var/run/secrets/tokens/bulla")
//		return string(jwt), err
//	})
func WithLogin(role string, jwt func(context.Context) (string, error)) Option {
	return func(c *Client) { c.logins = &logins{role: role, jwt: jwt, turn: make(chan struct{}, 1)} }
}

// The tokens of a client that logs in by itself.
type logins struct {
	role string
	jwt  func(context.Context) (string, error)
	// One goroutine at a time looks at the fields below.
	turn  chan struct{}
	token string
	renew time.Time
}

// current returns a token that is valid for a while.
func (l *logins) current(ctx context.Context, c *Client) (string, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("kms: %w", context.Cause(ctx))
	}
	if l.token != "" && time.Now().Before(l.renew) {
		return l.token, nil
	}
	jwt, err := l.jwt(ctx)
	if err != nil {
		return "", fmt.Errorf("kms: no JWT to log in with: %w", err)
	}
	login, err := c.LogIn(ctx, l.role, jwt)
	if err != nil {
		return "", err
	}
	l.token, l.renew = login.Token, time.Now().Add(time.Until(login.Expires)*3/4)
	return l.token, nil
}

// bearer returns the token of a request; none for a login.
func (c *Client) bearer(ctx context.Context, path string) (string, error) {
	switch {
	case path == loginPath:
		return "", nil
	case c.logins != nil:
		return c.logins.current(ctx, c)
	}
	return c.token, nil
}
