// HashiCorp's wrapper for AWS KMS, with which Vault and others unseal themselves.
package main

import (
	"bytes"
	"context"
	"log"
	"os"

	wrapping "github.com/hashicorp/go-kms-wrapping/v2"
	"github.com/hashicorp/go-kms-wrapping/wrappers/awskms/v2"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	wrapper := awskms.NewWrapper()
	config := map[string]string{
		"kms_key_id": os.Getenv("KEY_ARN"),
		"region":     os.Getenv("AWS_REGION"),
		"endpoint":   os.Getenv("AWS_ENDPOINT_URL_KMS"),
	}
	if _, err := wrapper.SetConfig(ctx, wrapping.WithConfigMap(config)); err != nil {
		log.Fatal(err)
	}
	for _, secret := range [][]byte{[]byte("a"), bytes.Repeat([]byte{0}, 32), bytes.Repeat([]byte("k"), 40960)} {
		blob, err := wrapper.Encrypt(ctx, secret)
		if err != nil {
			log.Fatal(err)
		}
		opened, err := wrapper.Decrypt(ctx, blob)
		if err != nil || !bytes.Equal(opened, secret) {
			log.Fatalf("expected what was wrapped, got %q, %v", opened, err)
		}
		if blob.KeyInfo.KeyId != os.Getenv("KEY_ARN") {
			log.Fatalf("expected the key %s, got %s", os.Getenv("KEY_ARN"), blob.KeyInfo.KeyId)
		}
		wrapped := blob.KeyInfo.WrappedKey
		wrapped[len(wrapped)-1] ^= 1
		if _, err := wrapper.Decrypt(ctx, blob); err == nil {
			log.Fatal("expected a refusal of what was altered")
		}
	}
}
