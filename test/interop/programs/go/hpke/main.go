// Seals and opens with Go's crypto/hpke and MLKEM768-X25519, HKDF-SHA256, AES-256-GCM: reads a list of messages as JSON
// from stdin, and writes it to stdout with the missing fields. Messages with a seed are opened, others are sealed.
package main

import (
	"crypto/hpke"
	"encoding/json"
	"os"
)

type message struct {
	Seed, PublicKey, Info, Aad, Enc, Ciphertext, Plaintext []byte
}

func need(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	var all []message
	need(json.NewDecoder(os.Stdin).Decode(&all))
	kem, kdf, aead := hpke.MLKEM768X25519(), hpke.HKDFSHA256(), hpke.AES256GCM()
	for i := range all {
		m := &all[i]
		if m.Seed == nil {
			key, err := kem.NewPublicKey(m.PublicKey)
			need(err)
			enc, sender, err := hpke.NewSender(key, kdf, aead, m.Info)
			need(err)
			m.Enc = enc
			m.Ciphertext, err = sender.Seal(m.Aad, m.Plaintext)
			need(err)
			continue
		}
		key, err := kem.NewPrivateKey(m.Seed)
		need(err)
		m.PublicKey = key.PublicKey().Bytes()
		recipient, err := hpke.NewRecipient(m.Enc, key, kdf, aead, m.Info)
		need(err)
		m.Plaintext, err = recipient.Open(m.Aad, m.Ciphertext)
		need(err)
	}
	need(json.NewEncoder(os.Stdout).Encode(all))
}
