// A kms file back to what it holds. Who reads the header first to ask for the key uses `readPrelude` and `decryptChunks`.
import type { ByteSource } from './byte-source.ts';
import { decryptChunks } from './chunked.ts';
import { readPrelude } from './file-format.ts';

export interface DecryptFileInput {
  /** The bytes of the file. */
  readonly source: ByteSource;
  /** The ring's key, 32 bytes, unwrapped, or what gets it for the file's header. */
  readonly key: Uint8Array | ((header: string) => Promise<Uint8Array>);
}

/**
 * What the file holds. Every byte that comes out is authentic; that none is missing is known only at an end without an error.
 * Throws what `readPrelude` and `decryptChunks` throw.
 */
export async function* decryptFile({ source, key }: DecryptFileInput): AsyncGenerator<Uint8Array, void, void> {
  const { header, context, body } = await readPrelude(source);
  let bytes: Uint8Array;
  try {
    bytes = typeof key === 'function' ? await key(header) : key;
  } catch (error) {
    body.giveUp();
    throw error;
  }
  yield* decryptChunks(body, { key: bytes, context });
}
