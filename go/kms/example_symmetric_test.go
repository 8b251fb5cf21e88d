package kms_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/bulla-dev/bulla/go/kms"
)

// newSymmetricExampleClient starts a service with a key that encrypts, "orders", and one that makes
// MACs, "cookies", and returns a client of it.
func newSymmetricExampleClient() *kms.Client {
	client := newExampleClient()
	for label, algorithm := range map[string]string{"orders": "aes-256-gcm", "cookies": "hmac-sha256"} {
		if _, err := client.CreateKey(context.Background(), kms.NewKey{Label: label, Algorithm: algorithm}); err != nil {
			panic(err)
		}
	}
	return client
}

func ExampleClient_Encrypt() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	made, err := client.Encrypt(ctx, "orders", []byte("4 crates"), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(made.Version, len(made.Bytes))
	// Output: 1 41
}

func ExampleClient_Decrypt() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	order := &kms.EncryptionOptions{AssociatedData: []byte("order 7")}
	made, err := client.Encrypt(ctx, "orders", []byte("4 crates"), order)
	if err != nil {
		panic(err)
	}
	found, err := client.Decrypt(ctx, "orders", made.Bytes, order)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", found.Bytes)
	_, err = client.Decrypt(ctx, "orders", made.Bytes, nil)
	fmt.Println(err)
	// Output:
	// 4 crates
	// kms: the ciphertext was not made by this key (invalid_ciphertext)
}

func ExamplePlaintext_Format() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	made, _ := client.Encrypt(ctx, "orders", []byte("4 crates"), nil)
	found, err := client.Decrypt(ctx, "orders", made.Bytes, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%v\n", found)
	// Output: {local/files/aes-256-gcm/orders/v1 1 (secret)}
}

func ExampleClient_Rewrap() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	old, err := client.Encrypt(ctx, "orders", []byte("4 crates"), nil)
	if err != nil {
		panic(err)
	}
	if _, err := client.Rotate(ctx, "orders"); err != nil {
		panic(err)
	}
	made, err := client.Rewrap(ctx, "orders", old.Bytes, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(old.Version, made.Version)
	// Output: 1 2
}

func ExampleClient_GenerateDataKey() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	made, err := client.GenerateDataKey(ctx, "orders", 256, nil)
	if err != nil {
		panic(err)
	}
	defer clear(made.Plaintext)
	// Encrypt with the plaintext, and keep what is wrapped beside the data.
	again, err := client.Decrypt(ctx, "orders", made.Wrapped.Bytes, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(made.Plaintext), bytes.Equal(again.Bytes, made.Plaintext))
	// Output: 32 true
}

func ExampleDataKey_Format() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	made, err := client.GenerateDataKey(ctx, "orders", 256, nil)
	if err != nil {
		panic(err)
	}
	made.Wrapped.Bytes = nil
	fmt.Printf("%v\n", made)
	// Output: {{local/files/aes-256-gcm/orders/v1 1 []} (secret)}
}

func ExampleClient_GenerateWrappedDataKey() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	wrapped, err := client.GenerateWrappedDataKey(ctx, "orders", 256, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(wrapped.Version, len(wrapped.Bytes))
	// Output: 1 65
}

func ExampleClient_MAC() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	mac, err := client.MAC(ctx, "cookies", []byte("user=7"))
	if err != nil {
		panic(err)
	}
	fmt.Println(mac.Version, len(mac.Bytes))
	// Output: 1 32
}

func ExampleClient_VerifyMAC() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	mac, err := client.MAC(ctx, "cookies", []byte("user=7"))
	if err != nil {
		panic(err)
	}
	for _, message := range []string{"user=7", "user=8"} {
		valid, err := client.VerifyMAC(ctx, mac.Key, []byte(message), mac.Bytes)
		fmt.Println(message, valid, err)
	}
	// Output:
	// user=7 true <nil>
	// user=8 false <nil>
}

func ExampleClient_Random() {
	salt, err := newSymmetricExampleClient().Random(context.Background(), 32)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(salt))
	// Output: 32
}

func ExampleClient_EncryptMany() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	results, err := client.EncryptMany(ctx, "orders", []kms.EncryptItem{{Plaintext: []byte("one")}, {Plaintext: []byte("three")}})
	if err != nil {
		panic(err)
	}
	for _, result := range results {
		fmt.Println(len(result.Bytes), result.Err)
	}
	// Output:
	// 36 <nil>
	// 38 <nil>
}

func ExampleClient_DecryptMany() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	made, err := client.Encrypt(ctx, "orders", []byte("4 crates"), nil)
	if err != nil {
		panic(err)
	}
	results, err := client.DecryptMany(ctx, "orders", []kms.DecryptItem{{Ciphertext: made.Bytes}, {Ciphertext: []byte("altered")}})
	if err != nil {
		panic(err)
	}
	for _, result := range results {
		fmt.Printf("%s %v\n", result.Bytes, result.Err)
	}
	// Output:
	// 4 crates <nil>
	//  kms: the ciphertext was not made by this key (invalid_ciphertext)
}

func ExampleClient_RewrapMany() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	old, err := client.Encrypt(ctx, "orders", []byte("4 crates"), nil)
	if err != nil {
		panic(err)
	}
	if _, err := client.Rotate(ctx, "orders"); err != nil {
		panic(err)
	}
	results, err := client.RewrapMany(ctx, "orders", []kms.DecryptItem{{Ciphertext: old.Bytes}})
	if err != nil {
		panic(err)
	}
	fmt.Println(results[0].Version, results[0].Err)
	// Output: 2 <nil>
}

func ExampleClient_MACMany() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	results, err := client.MACMany(ctx, "cookies", [][]byte{[]byte("user=7"), []byte("user=8")})
	if err != nil {
		panic(err)
	}
	for _, result := range results {
		fmt.Println(len(result.Bytes), result.Err)
	}
	// Output:
	// 32 <nil>
	// 32 <nil>
}

func ExampleClient_VerifyMACMany() {
	client, ctx := newSymmetricExampleClient(), context.Background()
	mac, err := client.MAC(ctx, "cookies", []byte("user=7"))
	if err != nil {
		panic(err)
	}
	items := []kms.VerifyMACItem{{[]byte("user=7"), mac.Bytes, mac.Version}, {[]byte("user=8"), mac.Bytes, mac.Version}}
	verdicts, err := client.VerifyMACMany(ctx, "cookies", items)
	if err != nil {
		panic(err)
	}
	fmt.Println(verdicts[0].Valid, verdicts[1].Valid)
	// Output: true false
}
