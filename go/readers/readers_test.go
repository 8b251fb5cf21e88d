package readers

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kemschemes "github.com/cloudflare/circl/kem/schemes"
	"github.com/cloudflare/circl/sign"
	signschemes "github.com/cloudflare/circl/sign/schemes"
)

// A Hex is bytes that JSON contains in hexadecimal.
type Hex []byte

func (h *Hex) UnmarshalText(text []byte) error {
	decoded, err := hex.DecodeString(string(text))
	*h = decoded
	return err
}

func vectors(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func notNone(t *testing.T, cases int) {
	t.Helper()
	if cases == 0 {
		t.Fatal("there are no cases")
	}
}

func TestKeyIDs(t *testing.T) {
	var file struct {
		KeyIDs struct {
			Valid []struct {
				ID, Tenant, Purpose, Algorithm, UUID string
				Version                              uint32
			}
			Invalid []string
		} `json:"key_ids"`
	}
	vectors(t, "keys.json", &file)
	notNone(t, len(file.KeyIDs.Valid))
	for _, c := range file.KeyIDs.Valid {
		got, err := ParseKeyID(c.ID)
		if want := (KeyID{c.Tenant, c.Purpose, c.Algorithm, c.UUID, c.Version}); err != nil || got != want {
			t.Errorf("%s: %v, %v", c.ID, got, err)
		}
	}
	for _, id := range file.KeyIDs.Invalid {
		if _, err := ParseKeyID(id); err == nil {
			t.Errorf("%q was read", id)
		}
	}
}

func TestPublicKeyOfPEM(t *testing.T) {
	var file struct {
		PublicKeys []struct {
			Algorithm, PEM string
			Raw            Hex
		} `json:"public_keys"`
	}
	vectors(t, "keys.json", &file)
	notNone(t, len(file.PublicKeys))
	for _, c := range file.PublicKeys {
		block, rest := pem.Decode([]byte(c.PEM))
		if block == nil || len(rest) != 0 {
			t.Fatalf("%s: not PEM", c.Algorithm)
		}
		raw := block.Bytes[max(0, len(block.Bytes)-len(c.Raw)):]
		if c.Algorithm == "ed25519" || c.Algorithm == "ecdsa-p256" {
			key, err := x509.ParsePKIXPublicKey(block.Bytes)
			switch key := key.(type) {
			case ed25519.PublicKey:
				raw = key
			case *ecdsa.PublicKey:
				raw = compressed(t, key)
			default:
				t.Fatalf("%s: %v", c.Algorithm, err)
			}
		}
		if !bytes.Equal(raw, c.Raw) {
			t.Errorf("%s: another key, %x", c.Algorithm, raw)
		}
	}
}

func compressed(t *testing.T, key *ecdsa.PublicKey) []byte {
	t.Helper()
	point, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{2 + point[64]&1}, point[1:33]...)
}

func TestECDSA(t *testing.T) {
	var file struct {
		ECDSA []struct {
			PublicKey          Hex `json:"public_key"`
			Message, Signature Hex
		}
	}
	vectors(t, "keys.json", &file)
	notNone(t, len(file.ECDSA))
	for _, c := range file.ECDSA {
		x, y := elliptic.UnmarshalCompressed(elliptic.P256(), c.PublicKey)
		if x == nil || len(c.Signature) != 64 {
			t.Fatalf("%x: not a compressed point, or no signature", c.PublicKey)
		}
		point := append(x.FillBytes(make([]byte, 32)), y.FillBytes(make([]byte, 32))...)
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, point...))
		if err != nil {
			t.Fatal(err)
		}
		r, s := new(big.Int).SetBytes(c.Signature[:32]), new(big.Int).SetBytes(c.Signature[32:])
		digest, other := sha256.Sum256(c.Message), sha256.Sum256(append(c.Message, 'x'))
		if !ecdsa.Verify(key, digest[:], r, s) || ecdsa.Verify(key, other[:], r, s) {
			t.Errorf("%q: not a signature of it, or of another message too", c.Message)
		}
	}
}

var hashes = map[string]crypto.Hash{"sha2-256": crypto.SHA256, "sha2-384": crypto.SHA384, "sha2-512": crypto.SHA512}

// digests returns the digest of a message, and that of another one.
func digests(t *testing.T, name string, message []byte) (hash crypto.Hash, digest, other []byte) {
	t.Helper()
	hash, found := hashes[name]
	if !found {
		t.Fatalf("no hash function %q", name)
	}
	of := func(message []byte) []byte {
		hasher := hash.New()
		hasher.Write(message)
		return hasher.Sum(nil)
	}
	return hash, of(message), of(append(bytes.Clone(message), 'x'))
}

func TestECDSAOnLargerCurves(t *testing.T) {
	var file struct {
		ECDSA []struct {
			Algorithm, Hash    string
			PublicKey          Hex `json:"public_key"`
			Message, Signature Hex
		}
	}
	vectors(t, "nist.json", &file)
	notNone(t, len(file.ECDSA))
	curves := map[string]elliptic.Curve{"ecdsa-p384": elliptic.P384(), "ecdsa-p521": elliptic.P521()}
	for _, c := range file.ECDSA {
		key, err := ecdsa.ParseUncompressedPublicKey(curves[c.Algorithm], c.PublicKey)
		if err != nil {
			t.Fatalf("%s: %v", c.Algorithm, err)
		}
		half := len(c.Signature) / 2
		r, s := new(big.Int).SetBytes(c.Signature[:half]), new(big.Int).SetBytes(c.Signature[half:])
		_, digest, other := digests(t, c.Hash, c.Message)
		if !ecdsa.Verify(key, digest, r, s) || ecdsa.Verify(key, other, r, s) {
			t.Errorf("%s, %q: not a signature of it, or of another message too", c.Algorithm, c.Message)
		}
	}
}

func TestRSA(t *testing.T) {
	var file struct {
		Keys []struct {
			Algorithm  string
			PrivateKey Hex `json:"private_key"`
			PublicKey  Hex `json:"public_key"`
		} `json:"rsa_keys"`
		Signatures []struct {
			Algorithm, Hash, Padding string
			SaltLength               int `json:"salt_length"`
			Message, Signature       Hex
		} `json:"rsa_signatures"`
		OAEP []struct {
			Algorithm                    string
			Label, Plaintext, Ciphertext Hex
		} `json:"rsa_oaep"`
	}
	vectors(t, "nist.json", &file)
	notNone(t, min(len(file.Keys), len(file.Signatures), len(file.OAEP)))
	keys := map[string]*rsa.PrivateKey{}
	for _, c := range file.Keys {
		key, err := x509.ParsePKCS1PrivateKey(c.PrivateKey)
		if err != nil || !bytes.Equal(x509.MarshalPKCS1PublicKey(&key.PublicKey), c.PublicKey) {
			t.Fatalf("%s: another public key, %v", c.Algorithm, err)
		}
		keys[c.Algorithm] = key
	}
	for _, c := range file.Signatures {
		key := &keys[c.Algorithm].PublicKey
		hash, digest, other := digests(t, c.Hash, c.Message)
		verify := func(digest []byte) error {
			if c.Padding == "pss" {
				return rsa.VerifyPSS(key, hash, digest, c.Signature, &rsa.PSSOptions{SaltLength: c.SaltLength})
			}
			return rsa.VerifyPKCS1v15(key, hash, digest, c.Signature)
		}
		if err := verify(digest); err != nil || verify(other) == nil {
			t.Errorf("%s, %s, %s: %v, or another message verifies too", c.Algorithm, c.Padding, c.Hash, err)
		}
	}
	for _, c := range file.OAEP {
		found, err := rsa.DecryptOAEP(sha256.New(), nil, keys[c.Algorithm], c.Ciphertext, c.Label)
		if err != nil || !bytes.Equal(found, c.Plaintext) {
			t.Errorf("%s: %x, %v", c.Algorithm, found, err)
		}
		if _, err := rsa.DecryptOAEP(sha256.New(), nil, keys[c.Algorithm], c.Ciphertext, append(c.Label, 'x')); err == nil {
			t.Errorf("%s: another label decrypts", c.Algorithm)
		}
	}
}

func TestSignaturesOfDigests(t *testing.T) {
	var file struct {
		Prehash []struct {
			Prehash                     string
			PublicKey                   Hex `json:"public_key"`
			Message, Context, Signature Hex
		}
	}
	vectors(t, "keys.json", &file)
	notNone(t, len(file.Prehash))
	for _, c := range file.Prehash {
		key := ed25519.PublicKey(c.PublicKey)
		switch c.Prehash {
		case "blake3":
			if !ed25519.Verify(key, PrehashMessage(c.Message, c.Context), c.Signature) {
				t.Errorf("blake3, context %x", c.Context)
			}
		case "ed25519ph":
			digest := sha512.Sum512(c.Message)
			options := &ed25519.Options{Hash: crypto.SHA512, Context: string(c.Context)}
			if err := ed25519.VerifyWithOptions(key, digest[:], c.Signature, options); err != nil {
				t.Errorf("ed25519ph, context %x: %v", c.Context, err)
			}
		default:
			t.Errorf("unknown prehash %q", c.Prehash)
		}
	}
}

type signature struct {
	Algorithm          string
	PublicKey          Hex `json:"public_key"`
	Message, Signature Hex
}

func verifies(t *testing.T, scheme sign.Scheme, publicKey, message, signature []byte, context string) bool {
	t.Helper()
	key, err := scheme.UnmarshalBinaryPublicKey(publicKey)
	if err != nil {
		t.Fatal(err)
	}
	return scheme.Verify(key, message, signature, &sign.SignatureOpts{Context: context})
}

func TestPostQuantumSignatures(t *testing.T) {
	var file struct {
		MLDSA     []signature `json:"ml_dsa"`
		SLHDSA    []signature `json:"slh_dsa"`
		Composite []signature
	}
	vectors(t, "post-quantum.json", &file)
	notNone(t, min(len(file.MLDSA), len(file.SLHDSA), len(file.Composite)))
	for _, c := range append(file.MLDSA, file.SLHDSA...) {
		// Their names here: ML-DSA-44, SLH-DSA-SHA2-128s.
		name := strings.ToUpper(c.Algorithm[:len(c.Algorithm)-1]) + c.Algorithm[len(c.Algorithm)-1:]
		scheme := signschemes.ByName(name)
		if scheme == nil {
			t.Fatalf("no scheme %s", name)
		}
		if !verifies(t, scheme, c.PublicKey, c.Message, c.Signature, "") {
			t.Errorf("%s does not verify", name)
		}
		if verifies(t, scheme, c.PublicKey, append(c.Message, 'x'), c.Signature, "") {
			t.Errorf("%s verifies another message", name)
		}
	}
	for _, c := range file.Composite {
		label := "COMPSIG-MLDSA65-Ed25519-SHA512"
		digest := sha512.Sum512(c.Message)
		signed := append([]byte("CompositeAlgorithmSignatures2025"+label+"\x00"), digest[:]...)
		scheme := signschemes.ByName("ML-DSA-65")
		key, sig := scheme.PublicKeySize(), scheme.SignatureSize()
		if !verifies(t, scheme, c.PublicKey[:key], signed, c.Signature[:sig], label) {
			t.Error("ML-DSA-65 of the composite does not verify")
		}
		if !ed25519.Verify(ed25519.PublicKey(c.PublicKey[key:]), signed, c.Signature[sig:]) {
			t.Error("Ed25519 of the composite does not verify")
		}
	}
}

var kemNames = map[string]string{
	"ml-kem-512": "ML-KEM-512", "ml-kem-768": "ML-KEM-768", "ml-kem-1024": "ML-KEM-1024", "x-wing": "X-Wing",
}

func TestEncapsulatedKeys(t *testing.T) {
	var file struct {
		KEM []struct {
			Algorithm  string
			PrivateKey Hex `json:"private_key"`
			PublicKey  Hex `json:"public_key"`
			Ciphertext Hex
			SharedKey  Hex `json:"shared_key"`
		}
	}
	vectors(t, "post-quantum.json", &file)
	notNone(t, len(file.KEM))
	for _, c := range file.KEM {
		scheme := kemschemes.ByName(kemNames[c.Algorithm])
		if scheme == nil {
			t.Fatalf("no scheme for %s", c.Algorithm)
		}
		public, private := scheme.DeriveKeyPair(c.PrivateKey)
		encoded, err := public.MarshalBinary()
		if err != nil || !bytes.Equal(encoded, c.PublicKey) {
			t.Errorf("%s: another public key, %v", c.Algorithm, err)
		}
		shared, err := scheme.Decapsulate(private, c.Ciphertext)
		if err != nil || !bytes.Equal(shared, c.SharedKey) {
			t.Errorf("%s: another shared key, %v", c.Algorithm, err)
		}
	}
}

func TestEnvelopes(t *testing.T) {
	var file struct {
		Envelopes []struct {
			Kind                  byte
			Subject               string
			Key, Secret, Envelope Hex
		}
	}
	vectors(t, "sealing.json", &file)
	notNone(t, len(file.Envelopes))
	for _, c := range file.Envelopes {
		got, err := OpenEnvelope(c.Key, c.Envelope)
		if err != nil || got.Kind != c.Kind || got.Subject != c.Subject || !bytes.Equal(got.Secret, c.Secret) {
			t.Errorf("kind %d: %v, %v", c.Kind, got, err)
		}
		for i := range c.Envelope {
			changed := bytes.Clone(c.Envelope)
			changed[i] ^= 1
			if _, err := OpenEnvelope(c.Key, changed); err == nil {
				t.Errorf("kind %d: byte %d was changed", c.Kind, i)
			}
		}
	}
}

func TestWrappedKey(t *testing.T) {
	var file struct {
		Wrapped struct {
			Recipient Hex `json:"recipient_private_key"`
			PKCS8     Hex
			Text      string
		} `json:"wrapped_key"`
	}
	vectors(t, "sealing.json", &file)
	scheme := kemschemes.ByName("X-Wing")
	_, private := scheme.DeriveKeyPair(file.Wrapped.Recipient)
	document, err := UnwrapKey(scheme, private, file.Wrapped.Text)
	if err != nil || !bytes.Equal(document, file.Wrapped.PKCS8) {
		t.Fatalf("%x, %v", document, err)
	}
	if _, err := x509.ParsePKCS8PrivateKey(document); err != nil {
		t.Error(err)
	}
	changed := strings.Replace(file.Wrapped.Text, "/v3\n", "/v4\n", 1)
	if _, err := UnwrapKey(scheme, private, changed); err == nil {
		t.Error("a line was changed")
	}
}
