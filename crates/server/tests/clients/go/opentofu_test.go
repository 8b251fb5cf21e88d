package clients

import (
	"bytes"
	"testing"

	openbao "github.com/openbao/openbao/api/v2"
)

// TestOpenTofu sends what the key provider "openbao" of OpenTofu sends for a state, by the same
// library: a new data key at each change, and the one of the state before to read it. The provider
// itself is an internal package of OpenTofu.
func TestOpenTofu(t *testing.T) {
	config := openbao.DefaultConfig()
	if config.Error != nil {
		t.Fatal(config.Error)
	}
	asks, err := openbao.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	name := cipher(t, nil)
	// The provider's `associated_data`, where it is set, goes as the user wrote it: base64.
	for _, associated := range []map[string]any{{}, {"associated_data": encode([]byte("a stack"))}} {
		ask := func(path string, members map[string]any) map[string]any {
			t.Helper()
			for member, value := range associated {
				members[member] = value
			}
			answer, err := asks.Logical().WriteWithContext(t.Context(), "transit/"+path+name, members)
			if err != nil {
				t.Fatal(err)
			}
			return answer.Data
		}
		// Its `key_length` is 16, 32 or 64 bytes.
		for _, bits := range []int{128, 256, 512} {
			made := ask("datakey/plaintext/", map[string]any{"bits": bits})
			write(t, client(t), "transit/keys/"+name+"/rotate", nil)
			found := ask("decrypt/", map[string]any{"ciphertext": made["ciphertext"]})
			key := decode(t, made["plaintext"].(string))
			if len(key) != bits/8 || !bytes.Equal(key, decode(t, found["plaintext"].(string))) {
				t.Fatal(bits, len(key))
			}
		}
	}
}
