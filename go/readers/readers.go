package readers

import (
	"bytes"
	"crypto/aes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cloudflare/circl/kem"
	"github.com/zeebo/blake3"
	"golang.org/x/crypto/chacha20poly1305"
)

// A KeyID names one version of one key: TENANT/PURPOSE/ALGORITHM/UUID/vN.
type KeyID struct {
	Tenant, Purpose, Algorithm, UUID string
	Version                          uint32
}

var keyID = regexp.MustCompile(`\A([a-z0-9][a-z0-9._-]{0,63})/([a-z0-9][a-z0-9._-]{0,63})/` +
	`(ed25519|ecdsa-p(?:256|384|521)|rsa-(?:2048|3072|4096)|ml-dsa-(?:44|65|87)|ml-dsa-65-ed25519|slh-dsa-(?:sha2|shake)-(?:128|192|256)[sf]|ml-kem-(?:512|768|1024)|x-wing` +
	`|aes-(?:128|256)-gcm|x?chacha20-poly1305|hmac-sha(?:256|384|512)|blake3)/` +
	`([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})/v([1-9][0-9]{0,9})\z`)

// ParseKeyID reads a key id. A name has exactly one text form, and ParseKeyID refuses every other
// text.
func ParseKeyID(text string) (KeyID, error) {
	parts := keyID.FindStringSubmatch(text)
	if parts == nil {
		return KeyID{}, fmt.Errorf("%q is not of the form TENANT/PURPOSE/ALGORITHM/UUID/vN", text)
	}
	version, err := strconv.ParseUint(parts[5], 10, 32)
	if err != nil {
		return KeyID{}, err
	}
	return KeyID{parts[1], parts[2], parts[3], parts[4], uint32(version)}, nil
}

// PrehashMessage returns the bytes that Ed25519 signs for a message that is first hashed with
// BLAKE3. The context has at most 255 bytes.
func PrehashMessage(message, context []byte) []byte {
	digest := blake3.Sum256(message)
	framed := append([]byte("bulla ed25519 blake3\x00"), byte(len(context)))
	return append(append(framed, context...), digest[:]...)
}

// Envelope is an opened envelope of a keystore.
type Envelope struct {
	Kind    byte
	Subject string
	Secret  []byte
}

var errEnvelope = errors.New("not an envelope of format 1, or cut")

// OpenEnvelope opens an envelope: XChaCha20-Poly1305, with everything before the nonce as the
// associated data.
func OpenEnvelope(key, envelope []byte) (Envelope, error) {
	if len(envelope) < 8 || string(envelope[:5]) != "BENV\x01" {
		return Envelope{}, errEnvelope
	}
	end := 8 + int(binary.BigEndian.Uint16(envelope[6:8]))
	if len(envelope) < end+chacha20poly1305.NonceSizeX {
		return Envelope{}, errEnvelope
	}
	cipher, err := chacha20poly1305.NewX(key)
	if err != nil {
		return Envelope{}, err
	}
	nonce, sealed := envelope[end:end+chacha20poly1305.NonceSizeX], envelope[end+chacha20poly1305.NonceSizeX:]
	secret, err := cipher.Open(nil, nonce, sealed, envelope[:end])
	if err != nil {
		return Envelope{}, err
	}
	return Envelope{envelope[5], string(envelope[8:end]), secret}, nil
}

// UnwrapKey opens a wrapped key with the recipient's private key; it returns PKCS#8 in DER.
func UnwrapKey(scheme kem.Scheme, private kem.PrivateKey, text string) ([]byte, error) {
	lines, last, found := strings.Cut(text, "wrapped-key: ")
	values := strings.Split(lines, "\n")
	if !found || len(values) != 6 || values[0] != "bulla wrapped key v1" {
		return nil, errors.New("not a wrapped key")
	}
	public, err := private.Public().MarshalBinary()
	if err != nil {
		return nil, err
	}
	digest := blake3.Sum256(public)
	if !strings.HasSuffix(values[3], " "+hex.EncodeToString(digest[:])) {
		return nil, errors.New("the key was wrapped for another recipient")
	}
	encoded, found := strings.CutPrefix(values[4], "encapsulated: ")
	ciphertext, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !found || err != nil {
		return nil, errors.New("line 5 is not the ciphertext")
	}
	shared, err := scheme.Decapsulate(private, ciphertext)
	if err != nil {
		return nil, err
	}
	wrapped, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(last, "\n"))
	if err != nil {
		return nil, err
	}
	wrapping := make([]byte, 32)
	blake3.DeriveKey("bulla wrapped key v1 wrapping key", append(shared, lines...), wrapping)
	return unwrapAES(wrapping, wrapped)
}

var errWrapped = errors.New("it was wrapped under another key, or changed")

// unwrapAES is AES-KWP of more than one block (RFC 5649, section 4.2).
func unwrapAES(key, wrapped []byte) ([]byte, error) {
	if len(wrapped) < 24 || len(wrapped)%8 != 0 {
		return nil, errWrapped
	}
	cipher, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	blocks := len(wrapped)/8 - 1
	first, rest := binary.BigEndian.Uint64(wrapped), bytes.Clone(wrapped[8:])
	var block [16]byte
	for step := 6 * blocks; step > 0; step-- {
		part := rest[(step-1)%blocks*8:][:8]
		binary.BigEndian.PutUint64(block[:8], first^uint64(step))
		copy(block[8:], part)
		cipher.Decrypt(block[:], block[:])
		first = binary.BigEndian.Uint64(block[:8])
		copy(part, block[8:])
	}
	length := int(uint32(first))
	if first>>32 != 0xa65959a6 || length > len(rest) || length <= len(rest)-8 {
		return nil, errWrapped
	}
	for _, padding := range rest[length:] {
		if padding != 0 {
			return nil, errWrapped
		}
	}
	return rest[:length], nil
}
