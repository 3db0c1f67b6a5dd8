// Tink's AEAD for Vault, and its envelope encryption over it. Wrong associated data must not open a message.
package main

import (
	"bytes"
	"log"
	"net/url"
	"os"

	"github.com/hashicorp/vault/api"
	"github.com/tink-crypto/tink-go-hcvault/v2/integration/hcvault"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/tink"
)

func main() {
	log.SetFlags(0)
	client, err := api.NewClient(api.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	address, err := url.Parse(os.Getenv("VAULT_ADDR"))
	if err != nil {
		log.Fatal(err)
	}
	place := "hcvault://" + address.Host + "/transit/keys/"
	kms, err := hcvault.NewClientWithAEADOptions(place, client.Logical())
	if err != nil {
		log.Fatal(err)
	}
	remote, err := kms.GetAEAD(place + os.Getenv("RING"))
	if err != nil {
		log.Fatal(err)
	}
	check(remote)
	check(aead.NewKMSEnvelopeAEAD2(aead.AES256GCMKeyTemplate(), remote))

	// As older programs do: the associated data as the context of a ring that derives its keys.
	legacy, err := hcvault.NewClientWithAEADOptions(place, client.Logical(), hcvault.WithLegacyContextParamater())
	if err != nil {
		log.Fatal(err)
	}
	derived, err := legacy.GetAEAD(place + os.Getenv("DERIVED_RING"))
	if err != nil {
		log.Fatal(err)
	}
	checkOne(derived, []byte("payroll"), []byte("row 7"))
}

func check(cipher tink.AEAD) {
	for _, plaintext := range []string{"", "payroll"} {
		for _, data := range []string{"", "row 7"} {
			checkOne(cipher, []byte(plaintext), []byte(data))
		}
	}
}

func checkOne(cipher tink.AEAD, plaintext, data []byte) {
	ciphertext, err := cipher.Encrypt(plaintext, data)
	if err != nil {
		log.Fatal(err)
	}
	opened, err := cipher.Decrypt(ciphertext, data)
	if err != nil || !bytes.Equal(opened, plaintext) {
		log.Fatalf("expected what was encrypted, got %q, %v", opened, err)
	}
	if _, err := cipher.Decrypt(ciphertext, []byte("row 8")); err == nil {
		log.Fatal("expected a refusal of other associated data")
	}
}
