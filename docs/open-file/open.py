#!/usr/bin/env python3
"""Opens a kms file of version 2 without the program kms: open.py FILE PRIVATE-KEY [SHARE] > OUT, with Python 3.9 and its package
`cryptography`, 47 or newer. PRIVATE-KEY is a PEM file. SHARE is base64, as `POST /ks/decrypt` answers it; without it the appliance at
KMS_SERVER is asked with KMS_API_KEY, unless the file opens offline. Exit codes: 0 whole; 1 not opened, or damaged. See docs/file-format.md."""
import base64, hashlib, hmac, json, os, re, sys, urllib.request
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, hpke
from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

def private_keys(pem):  # by the id of their KEM: PKCS#8 of X25519 has 48 bytes, that of X-Wing 54, and both end with the key
    for block in re.findall(r"-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----", pem):
        der = base64.b64decode(block)
        if len(der) == 48:
            yield 0x0020, hpke.KEM.X25519, x25519.X25519PrivateKey.from_private_bytes(der[-32:])
        elif len(der) == 54:
            seeds = hashlib.shake_256(der[-32:]).digest(96)
            pair = mlkem.MLKEM768PrivateKey.from_seed_bytes(seeds[:64]), x25519.X25519PrivateKey.from_private_bytes(seeds[64:])
            yield 0x647A, hpke.KEM.MLKEM768_X25519, hpke.MLKEM768X25519PrivateKey(*pair)

def ask(header):
    fields = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["KMS_API_KEY"]}
    body = json.dumps({"header": header.decode()}).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(os.environ["KMS_SERVER"] + "/ks/decrypt", body, fields)))["share"]

def stanzas(file):  # header, KEM, sealed, wrapped key, and where it ends
    if file[:9] != b"kms-file\x02" or not 1 <= sum(file[9:10]) <= 20: raise ValueError("no kms file of version 2")
    at, number = 10, lambda at: int.from_bytes(file[at:at + 2], "big")
    for _ in range(file[9]):
        kem = at + 2 + number(at)
        end = kem + 4 + number(kem + 2)
        yield file[at + 2:kem], number(kem), file[kem + 4:end], file[end:end + 48], end + 48
        at = end + 48

def file_key(file, keys, share):
    for header, kem, sealed, wrapped, _ in stanzas(file):
        for name, private_key in [(name, key) for id, name, key in keys if id == kem]:
            suite = hpke.Suite(name, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
            try: secret = suite.decrypt(sealed, private_key, b"kms/file/recipient/v2 " + header)
            except InvalidTag: continue
            parts = secret if len(secret) == 64 else secret + base64.b64decode(share or ask(header))
            wrapping = HKDF(hashes.SHA256(), 32, None, b"kms/file/wrap/v2 " + header).derive(parts)
            return AESGCM(wrapping).decrypt(bytes(12), wrapped, None)
    raise ValueError("the private key opens no part of the file")

def main(name, key_file, share=None):
    file = open(name, "rb").read()
    key, body = file_key(file, list(private_keys(open(key_file).read())), share), list(stanzas(file))[-1][-1]
    info = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0" + file[body:body + 24] + file[:body]
    first = hmac.digest(key, info + b"\1", "sha512")
    okm = first + hmac.digest(key, first + info + b"\2", "sha512")
    if not hmac.compare_digest(okm[44:76], file[body + 24:body + 56]): raise ValueError("the beginning of the file was altered")
    for chunk, at in enumerate(range(body + 56, len(file) + 1, 16400)):  # the last one is shorter: with none, the end is missing
        nonce = (int.from_bytes(okm[32:44], "big") ^ chunk).to_bytes(12, "big")
        sys.stdout.buffer.write(AESGCM(okm[:32]).decrypt(nonce, file[at:at + 16400], None))

if __name__ == "__main__":
    try: main(*sys.argv[1:])
    except (InvalidTag, ValueError, KeyError, TypeError, OSError) as error: sys.exit(f"open.py: {str(error) or 'the file was altered'}")
