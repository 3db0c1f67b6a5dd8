// Entry point of the package: the typed client, encrypted files as Web Streams, and keys. See docs/sdk.md.

export { type ErrorCode, KmsError } from '../errors.ts';
export { type ClientOptions, createClient } from './client.ts';
export { type FileFault, faultOf } from './file-format.ts';
export {
  type DecryptAnswer,
  type DecryptStreamOptions,
  decryptBytes,
  decryptStream,
  type EncryptAnswer,
  type EncryptStreamOptions,
  encryptBytes,
  encryptStream,
  type FileStream,
  type OfflineAnswer,
  type OfflineDecryptOptions,
  type Whole,
} from './file-streams.ts';
export type * from './methods.ts';
export { items, pages } from './pages.ts';
export type { AnsweredRing, PublicKey } from './recipients.ts';
export type { Timing } from './retry.ts';
export {
  generateRingKey,
  type PrivateKey,
  publicKeyOf,
  type RingKeyPair,
  type RingPrivateKey,
  readPrivateKeys,
  unwrapRingKey,
} from './ring-keys.ts';
