// A new ring's key pair, made where the ring's owner is: only the public half goes to the appliance, as `publicKey` of
// `createKeyring`, so that the private half never crosses the network.
import { toBase64 } from '../crypto/encoding.ts';
import { systemRandom } from '../crypto/random.ts';
import { generateX25519, pkcs8ToPem, privateKeyToPkcs8, publicKeyToSpki } from '../crypto/x25519.ts';

export interface RingKeyPair {
  /** PEM (PKCS#8), secret. Whoever loses it cannot decrypt any more: nobody else has it. */
  readonly privateKey: string;
  /** Base64 of SPKI DER, as `createKeyring` takes it and as the ring shows it. */
  readonly publicKey: string;
}

/** A new X25519 pair from 32 bytes of `random`; default: the platform's secure generator. */
export function generateRingKey(random: (length: number) => Uint8Array = systemRandom): RingKeyPair {
  const { privateKey, publicKey } = generateX25519(random);
  return { privateKey: pkcs8ToPem(privateKeyToPkcs8(privateKey)), publicKey: toBase64(publicKeyToSpki(publicKey)) };
}
