package kms

import (
	"context"
	"fmt"
	"net/http"
)

// EncryptionOptions are the options of an encryption. Decryption needs the same ones. Nil is none.
type EncryptionOptions struct {
	// AssociatedData must be the same when the ciphertext is decrypted, for example the id of the
	// row that it is in. It is not secret, and not part of the ciphertext.
	AssociatedData []byte `json:"associated_data,omitempty"`
	// Context is what the key is derived from, for a key that was made for that
	// (NewKey.Derivation); otherwise it is empty.
	Context []byte `json:"context,omitempty"`
}

func (o *EncryptionOptions) orNone() EncryptionOptions {
	if o == nil {
		return EncryptionOptions{}
	}
	return *o
}

// A Ciphertext is a ciphertext and the key version that made it.
type Ciphertext struct {
	// Key is the key version id.
	Key     string `json:"key"`
	Version uint32 `json:"version"`
	Bytes   []byte `json:"ciphertext"`
}

// A Plaintext is a decrypted plaintext and the key version that decrypted it. Formatting it with
// package fmt does not show the plaintext. Go cannot wipe memory for certain: [clear] Bytes after
// the last use.
type Plaintext struct {
	// Key is the key version id.
	Key     string `json:"key"`
	Version uint32 `json:"version"`
	Bytes   []byte `json:"plaintext"`
}

// Format shows no plaintext.
func (p Plaintext) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "{%s %d (secret)}", p.Key, p.Version) }

// A DataKey is a key that encrypts data outside the service, and the same key encrypted. Formatting
// it with package fmt does not show the data key.
type DataKey struct {
	// Wrapped is the data key encrypted: keep it beside the data. Client.Decrypt decrypts it.
	Wrapped Ciphertext
	// Plaintext is the data key. Clear it after the last use.
	Plaintext []byte
}

// Format shows no data key.
func (d DataKey) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "{%v (secret)}", d.Wrapped) }

// A MAC is a message authentication code and the key version that made it.
type MAC struct {
	// Key is the key version id: VerifyMAC takes it as a key.
	Key     string `json:"key"`
	Version uint32 `json:"version"`
	Bytes   []byte `json:"mac"`
}

// Encrypt encrypts a plaintext with the latest version of a key.
func (c *Client) Encrypt(ctx context.Context, key string, plaintext []byte, options *EncryptionOptions) (*Ciphertext, error) {
	made := new(Ciphertext)
	body := EncryptItem{orEmpty(plaintext), options.orNone()}
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/encrypt"), body, made, reads); err != nil {
		return nil, err
	}
	return made, nil
}

// Decrypt decrypts a ciphertext of any version of a key. CodeInvalidCiphertext does not say whether
// the ciphertext was changed, or belongs to another key, version, context or associated data.
func (c *Client) Decrypt(ctx context.Context, key string, ciphertext []byte, options *EncryptionOptions) (*Plaintext, error) {
	found := new(Plaintext)
	body := DecryptItem{orEmpty(ciphertext), options.orNone()}
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/decrypt"), body, found, reads); err != nil {
		return nil, err
	}
	return found, nil
}

// Rewrap encrypts a ciphertext again with the latest version of a key. The plaintext does not leave
// the service.
func (c *Client) Rewrap(ctx context.Context, key string, ciphertext []byte, options *EncryptionOptions) (*Ciphertext, error) {
	made := new(Ciphertext)
	body := DecryptItem{orEmpty(ciphertext), options.orNone()}
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/rewrap"), body, made, reads); err != nil {
		return nil, err
	}
	return made, nil
}

// GenerateDataKey makes a random key of 128, 256 or 512 bits for data, and encrypts it with the
// latest version of a key.
func (c *Client) GenerateDataKey(ctx context.Context, key string, bits int, options *EncryptionOptions) (*DataKey, error) {
	var answer struct {
		Ciphertext
		Plaintext []byte `json:"plaintext"`
	}
	body := dataKeyBody{bits, true, options.orNone()}
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/data-key"), body, &answer, reads); err != nil {
		return nil, err
	}
	return &DataKey{answer.Ciphertext, answer.Plaintext}, nil
}

// GenerateWrappedDataKey makes a random key of 128, 256 or 512 bits for data, and returns it
// encrypted only: for programs that encrypt later, or elsewhere.
func (c *Client) GenerateWrappedDataKey(ctx context.Context, key string, bits int, options *EncryptionOptions) (*Ciphertext, error) {
	made := new(Ciphertext)
	body := dataKeyBody{bits, false, options.orNone()}
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/data-key"), body, made, reads); err != nil {
		return nil, err
	}
	return made, nil
}

type dataKeyBody struct {
	Bits      int  `json:"bits"`
	Plaintext bool `json:"plaintext"`
	EncryptionOptions
}

// MAC makes the message authentication code of a message with the latest version of a key.
func (c *Client) MAC(ctx context.Context, key string, message []byte) (*MAC, error) {
	made := new(MAC)
	body := map[string][]byte{"message": orEmpty(message)}
	if err := c.call(ctx, http.MethodPost, keyPath(key, "/mac"), body, made, reads); err != nil {
		return nil, err
	}
	return made, nil
}

// VerifyMAC says whether the key made the MAC of the message. The key is best the one that MAC
// names; a label means the latest version.
func (c *Client) VerifyMAC(ctx context.Context, key string, message, mac []byte) (bool, error) {
	var verdict struct {
		Valid bool `json:"valid"`
	}
	body := map[string][]byte{"message": orEmpty(message), "mac": orEmpty(mac)}
	err := c.call(ctx, http.MethodPost, keyPath(key, "/verify-mac"), body, &verdict, reads)
	return err == nil && verdict.Valid, err
}

// Random makes up to 65,536 random bytes, from the operating system of the service.
func (c *Client) Random(ctx context.Context, length int) ([]byte, error) {
	var answer struct {
		Random []byte `json:"random"`
	}
	err := c.call(ctx, http.MethodPost, "/api/v1/random", map[string]int{"bytes": length}, &answer, reads)
	return answer.Random, err
}

// An EncryptItem is one plaintext of a batch.
type EncryptItem struct {
	Plaintext []byte `json:"plaintext"`
	EncryptionOptions
}

// A DecryptItem is one ciphertext of a batch, to decrypt or to rewrap.
type DecryptItem struct {
	Ciphertext []byte `json:"ciphertext"`
	EncryptionOptions
}

// A CiphertextResult is a ciphertext, or why there is none.
type CiphertextResult struct {
	Ciphertext
	Err error
}

// A PlaintextResult is a plaintext, or why there is none.
type PlaintextResult struct {
	Plaintext
	Err error
}

// EncryptMany encrypts many plaintexts with one key, and returns a result for each. One item's
// error does not touch the others. If a request fails, it returns the results of the requests
// before as well, which belong to the first items.
func (c *Client) EncryptMany(ctx context.Context, key string, items []EncryptItem) ([]CiphertextResult, error) {
	each := func(item EncryptItem) any { return EncryptItem{orEmpty(item.Plaintext), item.EncryptionOptions} }
	return many(ctx, c, keyPath(key, "/encrypt/batch"), items, each, ciphertextResult)
}

// DecryptMany decrypts many ciphertexts of one key, and returns a result for each, as EncryptMany
// does.
func (c *Client) DecryptMany(ctx context.Context, key string, items []DecryptItem) ([]PlaintextResult, error) {
	type answer struct {
		Key     string `json:"key"`
		Version uint32 `json:"version"`
		Bytes   []byte `json:"plaintext"`
		Error   *Error `json:"error"`
	}
	result := func(one answer) PlaintextResult {
		return PlaintextResult{Plaintext{one.Key, one.Version, one.Bytes}, errorOrNil(one.Error)}
	}
	return many(ctx, c, keyPath(key, "/decrypt/batch"), items, decryptItem, result)
}

// RewrapMany encrypts many ciphertexts again with the latest version of their key, and returns a
// result for each, as EncryptMany does.
func (c *Client) RewrapMany(ctx context.Context, key string, items []DecryptItem) ([]CiphertextResult, error) {
	return many(ctx, c, keyPath(key, "/rewrap/batch"), items, decryptItem, ciphertextResult)
}

// A MACResult is a message authentication code, or why there is none.
type MACResult struct {
	MAC
	Err error
}

// MACMany makes the message authentication codes of many messages with one key, and returns a
// result for each, as EncryptMany does.
func (c *Client) MACMany(ctx context.Context, key string, messages [][]byte) ([]MACResult, error) {
	type answer struct {
		MAC
		Error *Error `json:"error"`
	}
	each := func(message []byte) any { return map[string][]byte{"message": orEmpty(message)} }
	result := func(one answer) MACResult { return MACResult{one.MAC, errorOrNil(one.Error)} }
	return many(ctx, c, keyPath(key, "/mac/batch"), messages, each, result)
}

// A VerifyMACItem is one message authentication code of a batch.
type VerifyMACItem struct {
	Message []byte `json:"message"`
	MAC     []byte `json:"mac"`
	// Version made it, as MAC.Version says; 0 is the latest.
	Version uint32 `json:"version,omitempty"`
}

// VerifyMACMany verifies many message authentication codes of one key, and returns a verdict for
// each, as VerifyMany does.
func (c *Client) VerifyMACMany(ctx context.Context, key string, items []VerifyMACItem) ([]VerifyResult, error) {
	each := func(item VerifyMACItem) any {
		return VerifyMACItem{orEmpty(item.Message), orEmpty(item.MAC), item.Version}
	}
	return many(ctx, c, keyPath(key, "/verify-mac/batch"), items, each, verifyResult)
}

func decryptItem(item DecryptItem) any {
	return DecryptItem{orEmpty(item.Ciphertext), item.EncryptionOptions}
}

type ciphertextAnswer struct {
	Ciphertext
	Error *Error `json:"error"`
}

func ciphertextResult(one ciphertextAnswer) CiphertextResult {
	return CiphertextResult{one.Ciphertext, errorOrNil(one.Error)}
}
