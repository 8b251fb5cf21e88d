package kms

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// A SignedJWT is a JWT that the service signed. Its text does not show the JWT, which works for
// anyone who holds it.
type SignedJWT struct {
	// Key is the key version id of the version that signed, which is also the JWT's kid.
	Key     string `json:"key"`
	Version uint32 `json:"version"`
	// JWT is the JWT in the compact form.
	JWT string `json:"jwt"`
	// ID is its claim jti.
	ID      string    `json:"id"`
	Expires time.Time `json:"expires"`
}

// String names the JWT by its id, and does not show it.
func (j SignedJWT) String() string { return fmt.Sprintf("JWT %s until %s", j.ID, j.Expires) }

// GoString does not show the JWT either.
func (j SignedJWT) GoString() string { return j.String() }

// SignJWT signs a JWT with the latest version of a key that the service's settings name for that.
// claims becomes an object of JSON, for example from a map, and has an audience (aud) that the
// settings permit. The service sets iss, iat, nbf, exp and jti. Of lifetime, whole seconds count;
// if it is 0, the JWT lives as long as the settings permit.
func (c *Client) SignJWT(ctx context.Context, key string, claims any, lifetime time.Duration) (*SignedJWT, error) {
	body := struct {
		Claims   any    `json:"claims"`
		Lifetime *int64 `json:"lifetime_seconds,omitempty"`
	}{Claims: claims}
	if lifetime != 0 {
		seconds := int64(lifetime / time.Second)
		body.Lifetime = &seconds
	}
	signed := new(SignedJWT)
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/sign-jwt"), body, signed, reads); err != nil {
		return nil, err
	}
	return signed, nil
}
