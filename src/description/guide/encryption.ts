// KeyRings, keys, what encrypt and decrypt give, and Assets.
import type { Section } from '../prose.ts';

export const encryptionSections: readonly Section[] = [
  {
    id: 'rings',
    title: 'KeyRings and keys',
    blocks: [
      [
        'The name of a ring is a letter or digit, then at most 127 letters, digits, dots, underscores or hyphens (ASCII); any other is 400. `name` is its lower-case form, by which it is looked up and unique; `displayName` is the name as it was given.',
        'A ring of the key service and one of the asym service may have the same name: they have nothing to do with each other.',
        'A `publicKey` in a request is an X25519 key: base64 of SPKI DER, PEM, or base64 of the 32 raw bytes. Anything else, and a point of low order, is 400. In an answer it is base64 of SPKI DER.',
        'Where none is given, the appliance makes a pair and answers the `privateKey`, base64 of PKCS#8 DER, once. It is never stored. Nobody, the operator included, can read the keys of the ring from the appliance afterwards, and nobody can bring a lost private key back.',
        'A key is 32 random bytes, made inside the appliance, wrapped to the public key of its ring, and forgotten.',
        'A ring keeps every key that it had. `activeKey` is the newest, and encrypts; the others still decrypt.',
        "`props` are kept with the ring, `keyProps` with its keys; both are `{}` where absent. `config.props` are the ring's `props`. `config.key.props` start as `keyProps` and are what later keys get.",
        '`maxEncryptCount` says how many encrypts a key serves. The next one rotates the ring first, in the same transaction. It is an integer of at least 1, else 400; 4,294,967,296 where nothing was set.',
        '`PUT /ks/config` replaces what it names and keeps the rest, and answers the whole configuration.',
        'A deleted ring is gone at once and its name is free. For 30 days `POST /ks/keyrings/{id}/restore` or `kms keyring restore` brings it back under its id; then its keys are erased. Restoring answers 404 when there is nothing to restore, and 400 when another ring has the name by now.',
        'An unknown ring is 404 everywhere, at the asym service too.',
      ],
      'How a key is wrapped: HPKE (RFC 9180), base mode, single shot, with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM. `aad` is the id of the key in UTF-8. `enc ‖ ct` is the encapsulated key, then the ciphertext.',
      {
        head: ['service', '`info`', '`keyData`'],
        rows: [
          [
            'key service',
            '`kms/ks/key/v1`',
            '`{"encrypted": {"key": {"value": base64(enc ‖ ct), "encoding": "base64"}}, "iv": base64(HPKE base nonce)}`',
          ],
          ['asym service', '`kms/asym/key/v1`', '`{"key": base64(enc ‖ ct)}`; `type` is `AES256`'],
        ],
      },
    ],
  },
  {
    id: 'hash-and-header',
    title: 'Encrypt, hash, header, decrypt',
    blocks: [
      [
        'A `hash` is URL-safe, at most 128 characters long, and another one for each encrypt. To this tenant alone it says which ring and key it stands for. Nothing is stored for it, and nothing is read to resolve it but the ring and the key.',
        'A hash that cannot be decoded, or was altered, is 400. One whose ring or key is gone is 404.',
        'A `header` is URL-safe, at most 1,024 characters long, and meant to stand in front of a ciphertext. It holds the version of its format (1), the hash, and, with an Asset, the id, version and Ed25519 signature of that.',
        '`GET /ks/header/{header}`: one that cannot be decoded, or whose ring is gone, is 404. One that can be decoded but was altered has `valid` false.',
        '`POST /ks/decrypt`: a header that cannot be decoded is 400, one whose ring is gone is 404. One that was altered is 400, or 422 where only the part of the Asset does not verify.',
        '`POST /ks/decrypt` takes a hash, a header, or both. Neither, or two that differ, is 400. With a hash alone, or a header without an Asset, there is no `asset` in the answer.',
      ],
    ],
  },
  {
    id: 'assets',
    title: 'Assets',
    blocks: [
      [
        "The signature covers the canonical JSON (RFC 8785) of the Asset's id, version, parents and data, and the hash. `GET /assets/signing-keys` publishes the keys that verify it.",
        '`asset: {}` in an encrypt makes an Asset with empty data. It belongs to the ring that it was made with. Encrypt answers it whole: `{id, createdAt, data, parents}`.',
        'With `assetId` an encrypt gives that Asset a new version. What the request does not name is kept; `data` and `parents` are each replaced whole; `createdAt` stays that of the first version.',
        'An older header verifies against the version that it signed, and `asset.data` is the data of that version.',
        'An Asset that was deleted does not verify: 422, with `valid` false. `asset.message` gives the verdict in words.',
        'An `assetId` that is unknown, deleted, or of another ring is 404. A parent that is unknown or deleted, or an Asset as its own ancestor, is 400.',
        'A search looks at current versions. All filters that are given must hold. `parents` asks for Assets that have all of these; `data` for Assets whose data contain this object, at any depth, where arrays and single values compare as a whole.',
      ],
    ],
  },
];
