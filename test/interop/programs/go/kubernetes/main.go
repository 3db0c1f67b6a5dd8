// The client of Kubernetes' KMS plugins, as in its API server, at the socket of `kms kubernetes-plugin`.
package main

import (
	"bytes"
	"context"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	kms "k8s.io/kms/apis/v2"
)

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	connection, err := grpc.NewClient(os.Getenv("SOCKET"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	client := kms.NewKeyManagementServiceClient(connection)
	told, err := client.Status(ctx, &kms.StatusRequest{}, grpc.WaitForReady(true))
	if err != nil {
		log.Fatal(err)
	}
	if told.Version != "v2" || told.Healthz != "ok" || told.KeyId == "" {
		log.Fatalf("expected version v2, ok and a key id, got %v", told)
	}
	for _, plaintext := range [][]byte{bytes.Repeat([]byte{1}, 32), {0}} {
		made, err := client.Encrypt(ctx, &kms.EncryptRequest{Plaintext: plaintext, Uid: "1"})
		if err != nil {
			log.Fatal(err)
		}
		if made.KeyId != told.KeyId || len(made.Ciphertext) == 0 || len(made.Ciphertext) >= 1024 {
			log.Fatalf("expected less than 1024 bytes under %s, got %d under %s", told.KeyId, len(made.Ciphertext), made.KeyId)
		}
		asked := &kms.DecryptRequest{Ciphertext: made.Ciphertext, KeyId: made.KeyId, Uid: "2", Annotations: made.Annotations}
		opened, err := client.Decrypt(ctx, asked)
		if err != nil || !bytes.Equal(opened.Plaintext, plaintext) {
			log.Fatalf("expected what was encrypted, got %v, %v", opened, err)
		}
		asked.Ciphertext[len(asked.Ciphertext)-1] ^= 1
		if _, err := client.Decrypt(ctx, asked); status.Code(err) != codes.DataLoss {
			log.Fatalf("expected a refusal of what was altered, got %v", err)
		}
	}
}
