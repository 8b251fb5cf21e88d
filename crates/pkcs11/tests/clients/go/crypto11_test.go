// Package clients has programs in Go that use the module of PKCS #11.
package clients

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ThalesGroup/crypto11"
)

// open opens the token of the service that the variables name.
func open(t *testing.T) *crypto11.Context {
	t.Helper()
	path := os.Getenv("BULLA_PKCS11_MODULE")
	if path == "" {
		t.Fatal("BULLA_PKCS11_MODULE does not name the module")
	}
	// The token is in BULLA_TOKEN, so nobody logs in.
	token, err := crypto11.Configure(&crypto11.Config{Path: path, TokenLabel: "bulla", LoginNotSupported: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := token.Close(); err != nil {
			t.Error(err)
		}
	})
	return token
}

// newID returns what a program chooses as its key's CKA_ID.
func newID(t *testing.T) []byte {
	t.Helper()
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	return id
}

// found finds a key by its id, as another run of the program would.
func found(t *testing.T, token *crypto11.Context, id []byte) crypto11.Signer {
	t.Helper()
	key, err := token.FindKeyPair(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key == nil {
		t.Fatal("the key is not found")
	}
	return key
}

func TestECDSAKeySignsAsACryptoSignerAndIsDestroyed(t *testing.T) {
	token, id := open(t), newID(t)
	made, err := token.GenerateECDSAKeyPair(id, elliptic.P256())
	if err != nil {
		t.Fatal(err)
	}
	key := found(t, token, id)
	digest := sha256.Sum256([]byte("a message"))
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	if !ecdsa.VerifyASN1(made.Public().(*ecdsa.PublicKey), digest[:], signature) {
		t.Error("the signature is not valid")
	}
	if err := made.Delete(); err != nil {
		t.Fatal(err)
	}
	if keys, err := token.FindKeyPairs(id, nil); err != nil || len(keys) != 0 {
		t.Errorf("the key is still there: %v, %v", keys, err)
	}
}

func TestRSAKeySignsByBothPaddings(t *testing.T) {
	token, id := open(t), newID(t)
	if _, err := token.GenerateRSAKeyPair(id, 2048); err != nil {
		t.Fatal(err)
	}
	key := found(t, token, id)
	public := key.Public().(*rsa.PublicKey)
	digest := sha256.Sum256([]byte("a message"))
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	if err := rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature); err != nil {
		t.Error(err)
	}
	options := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	signature, err = key.Sign(rand.Reader, digest[:], options)
	if err != nil {
		t.Fatal(err)
	}
	if err := rsa.VerifyPSS(public, crypto.SHA256, digest[:], signature, options); err != nil {
		t.Error(err)
	}
}

func TestCertificateIsSignedByAKeyOfTheToken(t *testing.T) {
	token, id := open(t), newID(t)
	key, err := token.GenerateECDSAKeyPair(id, elliptic.P384())
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "an authority"},
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.CheckSignatureFrom(certificate); err != nil {
		t.Error(err)
	}
}

func TestManyGoroutinesSignAtTheSameTime(t *testing.T) {
	token, id := open(t), newID(t)
	key, err := token.GenerateECDSAKeyPair(id, elliptic.P256())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 8 {
				digest := sha256.Sum256(newID(t))
				signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
				if err != nil {
					t.Error(err)
					return
				}
				if !ecdsa.VerifyASN1(key.Public().(*ecdsa.PublicKey), digest[:], signature) {
					t.Error("a signature of another goroutine's message")
				}
			}
		})
	}
	all.Wait()
}
