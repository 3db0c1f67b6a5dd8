// Encrypted files as Web Streams: the key is asked for and unwrapped here, the bytes go through in constant memory. The files are
// those of `kms encrypt` and `kms decrypt`.
import { concatBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { decryptFile } from './decrypt.ts';
import { encryptFile } from './encrypt.ts';
import type { AnswerTo, Client, InputOf } from './methods.ts';
import { type PrivateKey, readPrivateKey } from './private-key.ts';
import { unwrapRingKey } from './ring-key.ts';
import { type Through, through } from './through.ts';

export interface EncryptStreamOptions {
  readonly client: Pick<Client, 'encrypt'>;
  /** The ring's name. */
  readonly ring: string;
  /** The private key of that ring: what it issues is wrapped to it. */
  readonly privateKey: PrivateKey;
  /** A record that the file is to carry signed: see `encrypt`. */
  readonly asset?: NonNullable<InputOf<'encrypt'>['asset']>;
  /** Ends both sides of the stream with its reason. */
  readonly signal?: AbortSignal;
  /** As many random bytes as asked for. Default: the platform's secure generator. */
  readonly random?: (length: number) => Uint8Array;
}

export interface DecryptStreamOptions {
  readonly client: Pick<Client, 'decrypt'>;
  /** The private key of the file's ring, or what finds it once the appliance has said which ring that is. */
  readonly privateKey: PrivateKey | ((ring: DecryptAnswer) => PrivateKey | Promise<PrivateKey>);
  /** Decrypts a file whose asset does not verify; without it that is the error `asset-invalid`. */
  readonly allowInvalidAsset?: boolean;
  /** Ends both sides of the stream with its reason. */
  readonly signal?: AbortSignal;
}

export type EncryptAnswer = AnswerTo<'encrypt'>;
export type DecryptAnswer = AnswerTo<'decrypt'>;

/** For `pipeThrough`, once. */
export interface FileStream<Answer> extends Through {
  /**
   * What the appliance said of the file: its ring, and its asset with the verdict on it. It is asked when the stream is first read;
   * where the stream fails before, this fails alike.
   */
  readonly answer: Promise<Answer>;
}

/**
 * Bytes in, a kms file out. Fails with what `client.encrypt` fails with, and with `invalid` for the private key of another ring; a
 * private key that is none is thrown at once.
 */
export function encryptStream(options: EncryptStreamOptions): FileStream<EncryptAnswer> {
  const { client, ring: ringname, asset, random } = options;
  const privateKey = privateKeyBytes(options.privateKey);
  return fileStream<EncryptAnswer>(options.signal, async function* (source, signal, tell) {
    const answer = await client.encrypt(asset ? { ringname, asset } : { ringname }, { signal });
    const key = unwrapRingKey({ privateKey, key: answer.key });
    tell(answer);
    try {
      yield* encryptFile({ source, key, header: answer.header, ...(random && { random }) });
    } finally {
      key.fill(0);
    }
  });
}

/**
 * A kms file in, its bytes out. What comes out is authentic and in its place; that nothing is missing is known only when the stream ends
 * without an error. Fails with `invalid` for what is no kms file and for the private key of another ring, `corrupt` for a file that
 * was altered or cut, `asset-invalid`, and with what `client.decrypt` fails with; a private key that is none is thrown at once.
 */
export function decryptStream(options: DecryptStreamOptions): FileStream<DecryptAnswer> {
  const { privateKey } = options;
  const keyOf =
    typeof privateKey === 'function'
      ? async (answer: DecryptAnswer) => privateKeyBytes(await privateKey(answer))
      : always(privateKeyBytes(privateKey));
  return fileStream<DecryptAnswer>(options.signal, async function* (source, signal, tell) {
    let bytes: Uint8Array | undefined;
    const key = async (header: string): Promise<Uint8Array> => {
      const answer = await ask(options, header, signal);
      bytes = unwrapRingKey({ privateKey: await keyOf(answer), key: answer.key });
      tell(answer);
      return bytes;
    };
    try {
      yield* decryptFile({ source, key });
    } finally {
      bytes?.fill(0);
    }
  });
}

/** Bytes of a whole file or message, and what the appliance said of it. */
export interface Whole<Answer> {
  readonly bytes: Uint8Array;
  readonly answer: Answer;
}

/** A small message as a kms file. Rejects with what `encryptStream` fails with. */
export async function encryptBytes(bytes: Uint8Array, options: EncryptStreamOptions): Promise<Whole<EncryptAnswer>> {
  return whole(bytes, encryptStream(options));
}

/** What a small kms file holds, complete and authentic. Rejects with what `decryptStream` fails with. */
export async function decryptBytes(file: Uint8Array, options: DecryptStreamOptions): Promise<Whole<DecryptAnswer>> {
  return whole(file, decryptStream(options));
}

type Work<Answer> = (
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  tell: (answer: Answer) => void,
) => AsyncGenerator<Uint8Array, void, void>;

function fileStream<Answer>(signal: AbortSignal | undefined, work: Work<Answer>): FileStream<Answer> {
  let [tell, fail] = [(_: Answer): void => {}, (_: unknown): void => {}];
  const answer = new Promise<Answer>((resolve, reject) => {
    [tell, fail] = [resolve, reject];
  });
  // Whoever reads the stream learns of its failure there.
  answer.catch(() => {});
  async function* told(source: AsyncIterable<Uint8Array>, ended: AbortSignal) {
    try {
      yield* work(source, ended, tell);
    } catch (error) {
      fail(error);
      throw error;
    }
  }
  const streams = through((source, ended) => {
    ended.addEventListener('abort', () => fail(ended.reason), { once: true });
    return told(source, ended);
  }, signal);
  return { ...streams, answer };
}

async function ask(
  { client, allowInvalidAsset }: DecryptStreamOptions,
  header: string,
  signal: AbortSignal,
): Promise<DecryptAnswer> {
  try {
    return await client.decrypt({ header }, { signal });
  } catch (error) {
    if (!allowInvalidAsset || !(error instanceof KmsError) || error.code !== 'asset-invalid') throw error;
    // Status 422 has the shape of a good answer: that is the interface.
    const answer = error.body as DecryptAnswer | undefined;
    if (!answer?.key) throw error;
    return answer;
  }
}

async function whole<Answer>(bytes: Uint8Array, stream: FileStream<Answer>): Promise<Whole<Answer>> {
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
  const reader = source.pipeThrough(stream).getReader();
  const pieces: Uint8Array[] = [];
  for (let each = await reader.read(); !each.done; each = await reader.read()) pieces.push(each.value);
  return { bytes: concatBytes(...pieces), answer: await stream.answer };
}

function always<T>(value: T): () => T {
  return () => value;
}

function privateKeyBytes(key: PrivateKey): Uint8Array {
  return readPrivateKey(key, 'privateKey');
}
