// OpenBao's own Go library, with the two calls that OpenTofu's key provider makes: a data key, and the same key again
// from its ciphertext; both with and without associated data.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"log"
	"os"

	"github.com/openbao/openbao/api/v2"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	client, err := api.NewClient(api.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	ring := os.Getenv("RING")
	data := base64.StdEncoding.EncodeToString([]byte("state of one project"))
	for _, bits := range []int{128, 256, 512} {
		for _, bound := range []bool{false, true} {
			asked := map[string]any{"bits": bits}
			if bound {
				asked["associated_data"] = data
			}
			made, err := client.Logical().WriteWithContext(ctx, "transit/datakey/plaintext/"+ring, asked)
			if err != nil {
				log.Fatal(err)
			}
			key, err := base64.StdEncoding.DecodeString(made.Data["plaintext"].(string))
			if err != nil || len(key) != bits/8 {
				log.Fatalf("expected a key of %d bits, got %d bytes, %v", bits, len(key), err)
			}
			back := map[string]any{"ciphertext": made.Data["ciphertext"].(string)}
			if bound {
				if _, err := client.Logical().WriteWithContext(ctx, "transit/decrypt/"+ring, back); err == nil {
					log.Fatal("expected a refusal without the associated data")
				}
				back["associated_data"] = data
			}
			opened, err := client.Logical().WriteWithContext(ctx, "transit/decrypt/"+ring, back)
			if err != nil {
				log.Fatal(err)
			}
			if opened.Data["plaintext"].(string) != made.Data["plaintext"].(string) {
				log.Fatal("expected the same key")
			}
		}
	}
	var refused *api.ResponseError
	_, err = client.Logical().WriteWithContext(ctx, "transit/datakey/plaintext/nobody-made-it", nil)
	if !errors.As(err, &refused) || refused.StatusCode != 400 {
		log.Fatalf("expected 400, got %v", err)
	}
	if absent, err := client.Logical().ReadWithContext(ctx, "transit/keys/nobody-made-it"); absent != nil || err != nil {
		log.Fatalf("expected nothing and no error, got %v, %v", absent, err)
	}
	client.SetToken("kms_wrong")
	_, err = client.Logical().WriteWithContext(ctx, "transit/datakey/plaintext/"+ring, nil)
	if !errors.As(err, &refused) || refused.StatusCode != 403 {
		log.Fatalf("expected 403, got %v", err)
	}
}
