// HashiCorp's transit wrapper, with which Vault and others unseal themselves: a wrapped blob names the key that wrapped
// it.
package main

import (
	"bytes"
	"context"
	"log"
	"os"

	wrapping "github.com/hashicorp/go-kms-wrapping/v2"
	"github.com/hashicorp/go-kms-wrapping/wrappers/transit/v2"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	wrapper := transit.NewWrapper()
	config := map[string]string{
		"address":    os.Getenv("VAULT_ADDR"),
		"token":      os.Getenv("VAULT_TOKEN"),
		"key_name":   os.Getenv("RING"),
		"mount_path": "transit/",
	}
	if _, err := wrapper.SetConfig(ctx, wrapping.WithConfigMap(config)); err != nil {
		log.Fatal(err)
	}
	for _, secret := range [][]byte{[]byte("a"), bytes.Repeat([]byte{0}, 32), bytes.Repeat([]byte("k"), 4096)} {
		blob, err := wrapper.Encrypt(ctx, secret)
		if err != nil {
			log.Fatal(err)
		}
		opened, err := wrapper.Decrypt(ctx, blob)
		if err != nil || !bytes.Equal(opened, secret) {
			log.Fatalf("expected what was wrapped, got %q, %v", opened, err)
		}
		if blob.KeyInfo.KeyId != os.Getenv("KEY_ID") {
			log.Fatalf("expected the key id %s, got %s", os.Getenv("KEY_ID"), blob.KeyInfo.KeyId)
		}
		altered := &blob.Ciphertext[len(blob.Ciphertext)-5]
		if *altered == 'A' {
			*altered = 'B'
		} else {
			*altered = 'A'
		}
		if _, err := wrapper.Decrypt(ctx, blob); err == nil {
			log.Fatal("expected a refusal of what was altered")
		}
	}
	if err := wrapper.Finalize(ctx); err != nil {
		log.Fatal(err)
	}
}
