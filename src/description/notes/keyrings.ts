// Notes on the endpoints of KeyRings, client-side and asymmetric.
import type { asymEndpoints } from '../../api/asym.ts';
import { sample } from '../../api/example-values.ts';
import type { keyringEndpoints } from '../../api/keyrings.ts';
import type { Note } from '../prose.ts';

const badName = {
  field: 'name',
  message: 'expected a letter or digit, then at most 127 letters, digits, dots, underscores or hyphens',
};
const taken = { field: 'name', message: 'another keyring has this name' };
const noRing = { message: 'there is no such keyring' };
const noKey = { message: 'the keyring has no such key' };
const ringLimit = '10 keyrings';
const keyLimit = '100 keys in a keyring';
const asymName = { ringname: { description: 'name of the KeyRing; with `id=true` its id', example: 'devices' } };

export const keyringNotes: Readonly<Record<(typeof keyringEndpoints)[number]['id'], Note>> = {
  createKeyring: {
    description: [
      'With `kem` `mlkem768-x25519` the ring is hybrid: a quantum computer will not be able to open what is recorded today. Its clients need HPKE with the KEM 0x647a.',
      'Creates a KeyRing and its first key. If you give the `publicKey` of a pair made on the client, the private key never crosses the network. Without one, the appliance makes a pair and returns the `privateKey`, only once: keep it, because it is stored nowhere.',
    ],
    body: { name: 'Payroll', algo: 'aes256', props: { team: 'finance' }, keyProps: {} },
    problems: {
      400: [
        taken,
        badName,
        {
          field: 'publicKey',
          message:
            'expected a public key of X25519 or MLKEM768-X25519: base64 SPKI DER, PEM, base64 of the bytes, or of the latter a JWK',
        },
      ],
    },
    limits: [ringLimit],
  },
  listKeyrings: {
    description: [
      'Lists the KeyRings of the key service, without deleted ones.',
      'With `deleted=true` it lists only those that were deleted and can still be restored, with `deletedAt` and `restorableUntil`.',
    ],
  },
  getKeyring: {
    description: [
      'Returns one KeyRing. With `config=true`, its configuration comes along; with `keys=true`, its keys and their use, as from `GET /ks/keyrings/{ringname}/keys?usage=true`; with `apikeys=true`, for callers with `apikey.read`, the API keys that may use it, as from `GET /auth/search/keyring/{keyringname}/apikey?wildcard=true`. All of it is recorded as one `keyring.read`.',
    ],
    problems: { 404: [noRing] },
  },
  deleteKeyring: {
    description: [
      'The ring is gone at once: its name is free, and nothing that it encrypted can be decrypted. For 30 days it can be restored by its id, which is in the answer; then its keys are erased.',
      'A ring cannot be deleted while an active API key other than the caller names it in its flags.',
    ],
    params: { ringname: { description: 'name of the KeyRing', example: 'payroll' } },
    problems: { 400: [{ message: 'active API keys still use this keyring' }], 404: [noRing] },
  },
  restoreKeyring: {
    description: ['Brings back a KeyRing that was deleted less than 30 days ago, with all of its keys.'],
    params: { id: { description: 'id of the deleted KeyRing', example: sample.ringId } },
    problems: { 400: [taken], 404: [{ message: 'there is no deleted keyring of this id to restore' }] },
    limits: [ringLimit],
  },
  listKeys: {
    description: [
      'Lists every key that the ring has had, with the time of its creation and the public key that it is wrapped to, without the keys themselves.',
      'With `usage=true` each key shows when and by whom it was last requested to encrypt and to decrypt, and how often on each of the last 100 days (UTC), so you can see that an old key is no longer used. A page then has at most 200 keys.',
      'With `wrapped=true` each key has its `keyData`, and in `earlier` its previous wrappings. A page then has at most 200 keys.',
      'Every answer of `/ks/encrypt` and `/ks/decrypt` that contains the key counts, even a decrypt with 422 because the signature of its Asset does not verify. Reading a key by its id does not count. Uses before `since` are not known.',
    ],
    problems: { 404: [noRing] },
  },
  getKey: {
    description: [
      'Returns a key, wrapped to a public key of the ring, which is in the answer: only the holder of its private key can use it.',
    ],
    problems: { 404: [noRing, noKey] },
  },
  rotateKeyring: {
    description: ['Creates a new key, which encrypts from now on. Earlier keys still decrypt.'],
    problems: { 404: [noRing] },
    limits: [keyLimit],
  },
  rewrapKeys: {
    description: [
      'For owners who have changed the public key of a ring and still have the earlier private key: unwrap the earlier keys of `GET /ks/keyrings/{ringname}/keys?wrapped=true`, wrap each to the current public key (HPKE, `info` and `aad` as before), and send the result. From then on answers have the new wrapping, and what these keys encrypted no longer needs the earlier private key.',
      'The appliance can check that a wrapping has the right length, but not that it opens. So it keeps the earlier ones until the ring is erased; `wrapped=true` shows them, so that you can correct a wrong one. A key can be rewrapped at most 32 times; any of its earlier wrappings, of any kem, can always be put back: send it as `wrapped`, and it changes places with the current one. The active key is refused: it stays as the appliance wrapped it, so that nobody can give a ring a key that they know.',
      'Either all keys of a request are rewrapped or none. A key that already has the given wrapping is left alone, so a request can be repeated. Each key gets its own record, `keyring.rewrap`.',
    ],
    body: {
      ringname: 'payroll',
      publicKey: sample.publicKey,
      keys: [{ id: sample.keyId, wrapped: sample.wrappedKey, iv: sample.iv, replaces: sample.replacedHash }],
    },
    problems: {
      400: [
        { field: 'publicKey', message: 'the keyring has another public key' },
        { field: 'ringname', message: 'no key is wrapped to its public key yet: rotate the keyring first' },
        { field: 'keys.0.wrapped', message: 'expected base64 of 32 bytes wrapped by x25519' },
        { field: 'keys.0.replaces', message: 'the key is wrapped otherwise by now: read it again' },
        { field: 'keys.0.id', message: 'the active key stays as the appliance wrapped it: rotate the keyring first' },
        { field: 'keys.0.id', message: 'the key was rewrapped 32 times, which is the most' },
      ],
      404: [noRing, { message: 'keys.0: the keyring has no such key' }],
    },
  },
  getConfig: {
    description: [
      'Returns the configuration: `props`, the `props` of future keys, when a key is replaced, and whether files open offline.',
    ],
    problems: { 404: [noRing] },
  },
  putConfig: {
    description: [
      'Replaces what the request names, keeps the rest, and returns the whole configuration.',
      'A `publicKey` applies to future keys. Keep the private keys of earlier ones: only they open what was wrapped to those, until the owner rewraps it (`POST /ks/rewrap`). With `replaces`, the second of two simultaneous changes is refused, unless both set the same key.',
      'Once a key has served `maxEncryptCount` encrypts, or is `rotateAfter` seconds old, the next encrypt replaces it. Without encrypts, nothing is rotated.',
      '`offlineDecrypt` allows clients to seal files that are encrypted with `recipient` so that the private key alone opens them: the appliance is not asked, and nothing is recorded. It applies to what is encrypted from then on.',
    ],
    problems: {
      400: [
        { field: 'config.algos.aes256.maxEncryptCount', message: 'must be at least 1' },
        { field: 'config.rotateAfter', message: 'must be at least 3600' },
        {
          field: 'config.publicKey',
          message:
            'expected a public key of X25519 or MLKEM768-X25519: base64 SPKI DER, PEM, base64 of the bytes, or of the latter a JWK',
        },
        { field: 'config.replaces', message: 'goes with config.publicKey' },
        { field: 'config.replaces', message: 'the keyring has another public key by now: read it again' },
      ],
      404: [noRing],
    },
  },
};

export const asymNotes: Readonly<Record<(typeof asymEndpoints)[number]['id'], Note>> = {
  createAsymKeyring: {
    description: [
      'Creates a KeyRing of the asym service, its key pair and its first key. Only this answer contains the `privateKey`.',
    ],
    problems: { 400: [taken, badName] },
    limits: [ringLimit],
  },
  getAsymKey: {
    description: ["Returns a key, wrapped to the ring's public key, which is in the answer."],
    params: { ...asymName, keyId: { description: 'id of the key', example: sample.asymKeyId } },
    problems: { 404: [noRing, noKey] },
  },
  rotateAsymKeyring: {
    description: ['Creates a new key, which is the active one from now on. Earlier keys stay readable.'],
    body: { ringname: 'devices', algo: 'aes256' },
    problems: { 404: [noRing] },
    limits: [keyLimit],
  },
};
