// What the package exports as `./client`: the typed client, encrypted files as Web Streams, and keys. See docs/sdk.md.

export { type ErrorCode, errorCodes, KmsError } from '../errors.ts';
export { type ClientOptions, createClient } from './client.ts';
export { type FileFault, faultOf } from './file-faults.ts';
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
  type Whole,
} from './file-streams.ts';
export type * from './methods.ts';
export { items, pages } from './pages.ts';
export { type PrivateKey, publicKeyOf, readPrivateKey } from './private-key.ts';
export { unwrapRingKey } from './ring-key.ts';
export { generateRingKey, type RingKeyPair } from './ring-key-pair.ts';
export type { Timing } from './timing.ts';
