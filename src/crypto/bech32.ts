// Bech32 (BIP 173) as age uses it, without the limit of 90 characters: a readable prefix, the separator 1, the bytes in
// groups of five bits, and six checksum characters that catch typing errors.
import { bech32 } from '@scure/base';

/** Bech32 in lower case (all upper case is valid too). `prefix` is lower-case ASCII. */
export function toBech32(prefix: string, bytes: Uint8Array): string {
  return bech32.encode(prefix, bech32.toWords(bytes), false);
}

/** The prefix in lower case, and the bytes; undefined for any text that `toBech32` does not make, in either case. */
export function fromBech32(text: string): { readonly prefix: string; readonly bytes: Uint8Array } | undefined {
  try {
    const { prefix, bytes } = bech32.decodeToBytes(text, false);
    return { prefix, bytes };
  } catch {
    return undefined;
  }
}
