// A kms file from a stream of bytes: the prelude with the header, then the encrypted part.
import { systemRandom } from '../crypto/random.ts';
import { type ByteSource, byteReader } from './byte-source.ts';
import { encryptChunks } from './chunked.ts';
import { encodePrelude } from './file-format.ts';

export interface EncryptFileInput {
  /** The bytes to encrypt, of any length. */
  readonly source: ByteSource;
  /** The ring's key, 32 bytes, unwrapped. */
  readonly key: Uint8Array;
  /** The header that came with the key. */
  readonly header: string;
  /** Default: the platform's secure generator. */
  readonly random?: (length: number) => Uint8Array;
}

/** The bytes of the file. Throws `invalid` for a key or header that is none; what the source throws goes on up. */
export async function* encryptFile(input: EncryptFileInput): AsyncGenerator<Uint8Array, void, void> {
  const { source, key, header, random = systemRandom } = input;
  const reader = byteReader(source);
  let finished = false;
  try {
    const context = encodePrelude(header);
    yield context;
    yield* encryptChunks(reader, { key, context, random });
    finished = true;
  } finally {
    if (!finished) reader.giveUp();
  }
}
