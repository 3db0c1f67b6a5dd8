// Opens the keys of test/vectors/ring-keys.json, whose path is its argument, with the standard library alone.
package main

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log"
	"os"
)

type vector struct{ Kem, Service, Info, PrivateKey, PublicKey, KeyId, Wrapped, Key string }

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var vectors []vector
	check(json.Unmarshal(text, &vectors))
	for _, v := range vectors {
		private := privateKey(v)
		wrapped, err := base64.StdEncoding.DecodeString(v.Wrapped)
		check(err)
		at := len(wrapped) - 48
		recipient, err := hpke.NewRecipient(wrapped[:at], private, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(v.Info))
		check(err)
		key, err := recipient.Open([]byte(v.KeyId), wrapped[at:])
		check(err)
		fmt.Println(v.Kem, v.Service, hex.EncodeToString(key) == v.Key)
	}
}

func privateKey(v vector) hpke.PrivateKey {
	block, _ := pem.Decode([]byte(v.PrivateKey))
	der, err := base64.StdEncoding.DecodeString(v.PublicKey)
	check(err)
	if v.Kem == "x25519" {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		check(err)
		private, err := hpke.NewDHKEMPrivateKey(parsed.(*ecdh.PrivateKey))
		check(err)
		return private
	}
	private, err := hpke.MLKEM768X25519().NewPrivateKey(block.Bytes[22:])
	check(err)
	if !bytes.Equal(private.PublicKey().Bytes(), der[len(der)-1216:]) {
		log.Fatal("another public key")
	}
	return private
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
