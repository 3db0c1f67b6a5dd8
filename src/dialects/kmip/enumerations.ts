// Enumerations and masks of KMIP, as far as something here depends on their values.

export const objectTypes = {
  certificate: 1,
  symmetricKey: 2,
  publicKey: 3,
  privateKey: 4,
  secretData: 7,
  opaqueObject: 8,
} as const;

export const states = {
  preActive: 1,
  active: 2,
  deactivated: 3,
  compromised: 4,
  destroyed: 5,
  destroyedCompromised: 6,
} as const;

export const algorithms = {
  des: 0x01,
  tripleDes: 0x02,
  aes: 0x03,
  rsa: 0x04,
  ecdsa: 0x06,
  hmacSha1: 0x07,
  hmacSha224: 0x08,
  hmacSha256: 0x09,
  hmacSha384: 0x0a,
  hmacSha512: 0x0b,
  ecdh: 0x0e,
  ec: 0x1a,
  chaCha20Poly1305: 0x1e,
  ed25519: 0x37,
} as const;

export const formats = {
  raw: 1,
  opaque: 2,
  pkcs1: 3,
  pkcs8: 4,
  x509: 5,
  ecPrivateKey: 6,
  transparentSymmetric: 7,
  transparentRsaPrivate: 0x0a,
  transparentRsaPublic: 0x0b,
} as const;

export const modes = { cbc: 1, ecb: 2, ctr: 6, gcm: 9, keyWrapPadding: 0x0c, nistKeyWrap: 0x0d } as const;
export const paddings = { none: 1, oaep: 2, pkcs5: 3, ansiX923: 6, pkcs1: 8, pss: 0x0a } as const;

export const hashes: Readonly<Record<number, 'sha1' | 'sha2-224' | 'sha2-256' | 'sha2-384' | 'sha2-512'>> = {
  4: 'sha1',
  5: 'sha2-224',
  6: 'sha2-256',
  7: 'sha2-384',
  8: 'sha2-512',
};

export const usages = {
  sign: 0x01,
  verify: 0x02,
  encrypt: 0x04,
  decrypt: 0x08,
  wrap: 0x10,
  unwrap: 0x20,
  export: 0x40,
  mac: 0x80,
  verifyMac: 0x100,
  derive: 0x200,
} as const;

/**
 * Uses that protect something, which usage limits count: those above, Content Commitment, Certificate and CRL Sign,
 * Generate Cryptogram, and translations that encrypt or wrap.
 */
export const protecting =
  usages.sign | usages.encrypt | usages.wrap | usages.mac | usages.derive | 0x400 | 0x1000 | 0x2000 | 0x4000 | 0x50000;

/** Recommended Curve. */
export const curveNumbers = { p256: 7, p384: 10, p521: 13, secp256k1: 25, curve25519: 0x45 } as const;

export const linkTypes = {
  publicKey: 0x102,
  privateKey: 0x103,
  derivationBase: 0x104,
  derivedKey: 0x105,
  replacement: 0x106,
  replaced: 0x107,
} as const;

export const storage = { online: 1, archived: 2 } as const;
export const results = { success: 0, failed: 1, undone: 3 } as const;
export const continuations = { continue: 1, stop: 2, undo: 3 } as const;
export const validity = { valid: 1, invalid: 2 } as const;
export const encodings = { none: 1, ttlv: 2 } as const;
export const sha256 = 6;
