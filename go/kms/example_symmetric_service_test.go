package kms_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// symmetricVerbs are the requests about one symmetric key.
var symmetricVerbs = []string{"encrypt", "decrypt", "rewrap", "data-key", "mac", "verify-mac"}

const nonceLen = 12

// aead is the cipher of a version of a key, from 1.
func (k *exampleKey) aead(version int) cipher.AEAD {
	block, err := aes.NewCipher(k.versions[version-1].Seed())
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}

func (k *exampleKey) encrypt(plaintext, associated []byte) map[string]any {
	version := len(k.versions)
	ciphertext := append(binary.BigEndian.AppendUint32([]byte{1}, uint32(version)), make([]byte, nonceLen)...)
	ciphertext = k.aead(version).Seal(ciphertext, ciphertext[5:], plaintext, associated)
	return k.made(version, "ciphertext", ciphertext)
}

func (k *exampleKey) decrypt(ciphertext, associated []byte) (plaintext []byte, version int) {
	if len(ciphertext) < 5+nonceLen {
		return nil, 0
	}
	version = int(binary.BigEndian.Uint32(ciphertext[1:]))
	nonce, ciphertext := ciphertext[5:5+nonceLen], ciphertext[5+nonceLen:]
	plaintext, err := k.aead(version).Open([]byte{}, nonce, ciphertext, associated)
	if err != nil {
		return nil, 0
	}
	return plaintext, version
}

func (k *exampleKey) mac(version int, message []byte) []byte {
	mac := hmac.New(sha256.New, k.versions[version-1].Seed())
	mac.Write(message)
	return mac.Sum(nil)
}

func (k *exampleKey) made(version int, name string, value []byte) map[string]any {
	return map[string]any{"key": k.version(version), "version": version, name: value}
}

// useSymmetric does what one request, or one item of a batch, asks of a symmetric key.
func (s *exampleService) useSymmetric(name, verb string, item exampleItem) map[string]any {
	key, version := s.find(name)
	switch strings.TrimSuffix(verb, "/batch") {
	case "encrypt":
		return key.encrypt(item.Plaintext, item.AssociatedData)
	case "data-key":
		secret := make([]byte, 32)
		_, _ = rand.Read(secret)
		made := key.encrypt(secret, item.AssociatedData)
		made["plaintext"] = secret
		return made
	case "mac":
		return key.made(version, "mac", key.mac(version, item.Message))
	case "verify-mac":
		if item.Version != 0 {
			version = item.Version
		}
		return map[string]any{"valid": bytes.Equal(item.MAC, key.mac(version, item.Message))}
	}
	plaintext, version := key.decrypt(item.Ciphertext, item.AssociatedData)
	if plaintext == nil {
		return refused("invalid_ciphertext", "the ciphertext was not made by this key")
	}
	if strings.HasPrefix(verb, "rewrap") {
		return key.encrypt(plaintext, item.AssociatedData)
	}
	return key.made(version, "plaintext", plaintext)
}
