// AWS's SDK for Go, version 2: keys, messages, a signature, pages, typed errors; and credentials for a signed token where
// the environment names one.
package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"log"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"
)

var ctx = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func refused[E error](err error) {
	var kind E
	if !errors.As(err, &kind) {
		log.Fatalf("expected a refusal of type %T, got %v", kind, err)
	}
}

func coded(err error, code string) {
	var kind smithy.APIError
	if !errors.As(err, &kind) || kind.ErrorCode() != code {
		log.Fatalf("expected %s, got %v", code, err)
	}
}

func main() {
	log.SetFlags(0)
	client := kms.NewFromConfig(must(config.LoadDefaultConfig(ctx)))
	if alias := os.Getenv("KEY_ALIAS"); alias != "" {
		messages(client, alias)
		_, err := client.CreateKey(ctx, &kms.CreateKeyInput{})
		coded(err, "AccessDeniedException")
		return
	}
	made := must(client.CreateKey(ctx, &kms.CreateKeyInput{Description: aws.String("go")})).KeyMetadata
	alias := aws.String("alias/go")
	must(client.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: alias, TargetKeyId: made.KeyId}))
	_, err := client.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: alias, TargetKeyId: made.KeyId})
	refused[*types.AlreadyExistsException](err)
	messages(client, *alias)
	signatures(client)

	seen := map[string]bool{}
	for pages := kms.NewListKeysPaginator(client, &kms.ListKeysInput{Limit: aws.Int32(1)}); pages.HasMorePages(); {
		for _, key := range must(pages.NextPage(ctx)).Keys {
			seen[*key.KeyArn] = true
		}
	}
	if !seen[*made.Arn] || len(seen) < 2 {
		log.Fatalf("expected the key among all: %v", seen)
	}
	_, err = client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: aws.String("alias/nothing")})
	refused[*types.NotFoundException](err)
	must(client.DisableKey(ctx, &kms.DisableKeyInput{KeyId: made.KeyId}))
	_, err = client.Encrypt(ctx, &kms.EncryptInput{KeyId: alias, Plaintext: []byte("x")})
	refused[*types.DisabledException](err)
	id := os.Getenv("AWS_ACCESS_KEY_ID")
	stranger := credentials.NewStaticCredentialsProvider(id, "wrong", "")
	other := kms.NewFromConfig(must(config.LoadDefaultConfig(ctx, config.WithCredentialsProvider(stranger))))
	_, err = other.ListKeys(ctx, &kms.ListKeysInput{})
	coded(err, "InvalidSignatureException")
}

func messages(client *kms.Client, alias string) {
	bound := map[string]string{"app": "pay"}
	data := must(client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: &alias, KeySpec: types.DataKeySpecAes256, EncryptionContext: bound,
	}))
	blob := data.CiphertextBlob
	opened := must(client.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: blob, EncryptionContext: bound}))
	if !bytes.Equal(opened.Plaintext, data.Plaintext) || *opened.KeyId != *data.KeyId {
		log.Fatal("expected the data key that was made")
	}
	_, err := client.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: blob})
	refused[*types.InvalidCiphertextException](err)
}

func signatures(client *kms.Client) {
	spec := &kms.CreateKeyInput{KeySpec: types.KeySpecEccNistP256, KeyUsage: types.KeyUsageTypeSignVerify}
	id := must(client.CreateKey(ctx, spec)).KeyMetadata.KeyId
	digest := sha256.Sum256([]byte("release"))
	signed := must(client.Sign(ctx, &kms.SignInput{
		KeyId: id, Message: digest[:], MessageType: types.MessageTypeDigest,
		SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256,
	}))
	spki := must(client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: id})).PublicKey
	public := must(x509.ParsePKIXPublicKey(spki)).(*ecdsa.PublicKey)
	if !ecdsa.VerifyASN1(public, digest[:], signed.Signature) {
		log.Fatal("expected a valid signature")
	}
	_, err := client.Verify(ctx, &kms.VerifyInput{
		KeyId: id, Message: []byte("other"), Signature: signed.Signature,
		SigningAlgorithm: types.SigningAlgorithmSpecEcdsaSha256,
	})
	refused[*types.KMSInvalidSignatureException](err)
}
