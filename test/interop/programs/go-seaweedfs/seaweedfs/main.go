// The part of SeaweedFS, an object store, that speaks to AWS KMS for SSE-KMS.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/seaweedfs/seaweedfs/weed/kms"
	_ "github.com/seaweedfs/seaweedfs/weed/kms/aws"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	settings, err := json.Marshal(map[string]any{
		"default_provider": "aws",
		"providers": map[string]any{"aws": map[string]any{
			"type": "aws", "region": os.Getenv("AWS_REGION"), "endpoint": os.Getenv("AWS_ENDPOINT_URL_KMS"),
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	var config any
	if err := json.Unmarshal(settings, &config); err != nil {
		log.Fatal(err)
	}
	if err := kms.LoadKMSFromConfig(config); err != nil {
		log.Fatal(err)
	}
	provider := kms.GetGlobalKMS()
	if provider == nil {
		log.Fatal("expected a provider")
	}
	object := map[string]string{"aws:s3:arn": "arn:aws:s3:::orders/2026.csv"}
	made, err := provider.GenerateDataKey(ctx, &kms.GenerateDataKeyRequest{
		KeyID: os.Getenv("KEY"), KeySpec: kms.KeySpecAES256, EncryptionContext: object,
	})
	if err != nil {
		log.Fatal(err)
	}
	open := func(blob []byte, object map[string]string) ([]byte, error) {
		answer, err := provider.Decrypt(ctx, &kms.DecryptRequest{CiphertextBlob: blob, EncryptionContext: object})
		if err != nil {
			return nil, err
		}
		return answer.Plaintext, nil
	}
	opened, err := open(made.CiphertextBlob, object)
	if err != nil || !bytes.Equal(opened, made.Plaintext) {
		log.Fatalf("expected the data key that was made, got %v", err)
	}
	if _, err := open(made.CiphertextBlob, map[string]string{"aws:s3:arn": "arn:aws:s3:::orders/2025.csv"}); err == nil {
		log.Fatal("expected a refusal for another object")
	}
	described, err := provider.DescribeKey(ctx, &kms.DescribeKeyRequest{KeyID: os.Getenv("KEY")})
	if err != nil || described.KeyID == "" {
		log.Fatalf("expected the key, got %v", err)
	}
}
