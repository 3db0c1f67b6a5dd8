// Encrypted files as Web Streams: the key is requested and unwrapped here, and the bytes pass through in constant
// memory. The files are those of `kms encrypt` and `kms decrypt`.
import { concatBytes } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { KmsError } from '../errors.ts';
import { type ByteSource, byteReader, type Through, through } from './byte-streams.ts';
import { decryptChunks, encryptChunks } from './chunked.ts';
import { encodePrelude, faultOf, fileFault, type Prelude, readPrelude, type Stanza } from './file-format.ts';
import { askForKey, forgetKey } from './known-keys.ts';
import type { AnswerTo, Client, InputOf } from './methods.ts';
import { openByRing, openOffline, type PublicKey, sealToRings } from './recipients.ts';
import { type PrivateKey, type RingPrivateKey, readPrivateKeys } from './ring-keys.ts';

export interface EncryptStreamOptions {
  readonly client: Pick<Client, 'encrypt'>;
  /** The ring's name; with `publicKey` up to 20 names, and any one of the rings opens the file. */
  readonly ring: string | readonly string[];
  /** The private key of that ring, to unwrap its key. Either this or `publicKey`. */
  readonly privateKey?: PrivateKey;
  /**
   * The public key of that ring, or a function that returns it for each ring: for a writer that must not be able to
   * decrypt.
   */
  readonly publicKey?: PublicKey;
  /**
   * Whether the unwrapped key of the ring stays in memory with `client` for the next file, so that it is neither sent
   * nor unwrapped again. Default: true.
   */
  readonly keepKeys?: boolean;
  /** A record that the file carries signed: see `encrypt`. */
  readonly asset?: NonNullable<InputOf<'encrypt'>['asset']>;
  /** Ends both sides of the stream with its reason. */
  readonly signal?: AbortSignal;
  /** Returns that many random bytes. Default: the platform's secure generator. */
  readonly random?: (length: number) => Uint8Array;
}

export interface DecryptStreamOptions {
  readonly client: Pick<Client, 'decrypt'>;
  /** The private key of the file's ring, or a function that finds it once the appliance has named the ring. */
  readonly privateKey: PrivateKey | ((ring: DecryptAnswer) => PrivateKey | Promise<PrivateKey>);
  readonly offline?: false;
  /** Same as in `encryptStream`. */
  readonly keepKeys?: boolean;
  /** Decrypts a file even if its asset does not verify; otherwise that is the error `asset-invalid`. */
  readonly allowInvalidAsset?: boolean;
  /** Ends both sides of the stream with its reason. */
  readonly signal?: AbortSignal;
}

/**
 * For a file that was encrypted without the private key while its ring was configured with `offlineDecrypt`: the
 * private key alone opens it. No appliance authorizes it, records it, or verifies an asset.
 */
export interface OfflineDecryptOptions {
  readonly offline: true;
  /** The private key of one of the file's rings. */
  readonly privateKey: PrivateKey;
  /** Ends both sides of the stream with its reason. */
  readonly signal?: AbortSignal;
}

/** Information available without the appliance. */
export interface OfflineAnswer {
  /** Header of the ring that opened the file: `decrypt` accepts it once the appliance is reachable again. */
  readonly header: string;
}

export type EncryptAnswer = AnswerTo<'encrypt'>;
export type DecryptAnswer = AnswerTo<'decrypt'>;

/** To use with `pipeThrough`, once. */
export interface FileStream<Answer> extends Through {
  /**
   * The appliance's answer about the file: its ring (the first of several, or the one that opened it), and its asset
   * with the verdict on it; never the share. The appliance is asked when the stream is first read; if the stream fails
   * before, this rejects with the same error.
   */
  readonly answer: Promise<Answer>;
}

/**
 * Encrypts bytes to a kms file. Fails with any error of `client.encrypt`, with `invalid` for the private key of another
 * ring, and with `refused` if the public key given for a ring is not the one that the appliance has; a malformed
 * private key throws at once.
 */
export function encryptStream(options: EncryptStreamOptions): FileStream<EncryptAnswer> {
  const { client, ring, asset, random, keepKeys = true, publicKey } = options;
  if (publicKey !== undefined) {
    if (options.privateKey !== undefined) throw new KmsError('invalid', 'expected privateKey or publicKey, got both');
    return encryptToRings(options, publicKey);
  }
  if (typeof ring !== 'string') throw new KmsError('invalid', 'ring: expected one name; several go with publicKey');
  const ringname = ring;
  const privateKeys = privateKeysIn(options.privateKey ?? '');
  return fileStream<EncryptAnswer>(options.signal, async function* (source, signal, tell) {
    const { answer, bytes: key } = await askForKey(
      keepKeys ? client : {},
      { ringname, privateKeys },
      (known) => client.encrypt({ ringname, ...(asset && { asset }), ...known }, { signal }),
      () => privateKeys,
    );
    tell(answer);
    try {
      yield* encryptFile({ source, key, header: answer.header, ...(random && { random }) });
    } finally {
      key.fill(0);
    }
  });
}

function encryptToRings(options: EncryptStreamOptions, publicKey: PublicKey): FileStream<EncryptAnswer> {
  const { client, ring, asset, random } = options;
  const rings = typeof ring === 'string' ? [ring] : ring;
  return fileStream<EncryptAnswer>(options.signal, async function* (source, signal, tell) {
    const ask = (input: InputOf<'encrypt'>) => client.encrypt(input, { signal });
    const { answers, stanzas, fileKey } = await sealToRings({ rings, publicKey, asset, ask, random });
    for (const answer of answers.slice(0, 1)) tell(answer);
    try {
      yield* encryptFile({ source, key: fileKey, header: stanzas, ...(random && { random }) });
    } finally {
      fileKey.fill(0);
    }
  });
}

/**
 * Decrypts a kms file. Its output is authentic and in its place; only an end without an error proves that nothing is
 * missing. Fails with `invalid` if it is not a kms file or the private key is another ring's, `corrupt` if it was
 * altered or cut, `asset-invalid`, and any error of `client.decrypt`; a malformed private key throws at once. Offline
 * it fails with `refused` for a file that needs the appliance.
 */
export function decryptStream(options: DecryptStreamOptions): FileStream<DecryptAnswer>;
export function decryptStream(options: OfflineDecryptOptions): FileStream<OfflineAnswer>;
export function decryptStream(
  options: DecryptStreamOptions | OfflineDecryptOptions,
): FileStream<DecryptAnswer | OfflineAnswer> {
  return decryption(options);
}

function decryption(options: DecryptStreamOptions | OfflineDecryptOptions): FileStream<DecryptAnswer | OfflineAnswer> {
  const { privateKey } = options;
  const given = typeof privateKey === 'function' ? undefined : privateKeysIn(privateKey);
  return fileStream<DecryptAnswer | OfflineAnswer>(options.signal, async function* (source, signal, tell) {
    let bytes: Uint8Array | undefined;
    let id: string | undefined;
    const key = async (prelude: Prelude): Promise<Uint8Array> => {
      if (options.offline) {
        // An untyped program may pass a function: offline there is no ring to call it with.
        const { header, fileKey } = await openOffline(prelude, given ?? privateKeysIn(''));
        tell({ header });
        bytes = fileKey;
      } else {
        const { answer, key } = await keyByAppliance(prelude, options, given, signal);
        tell(answer);
        bytes = key;
        id = answer.key.id;
      }
      return bytes;
    };
    try {
      yield* decryptFile({ source, key });
    } catch (error) {
      if (id !== undefined && !options.offline && faultOf(error) === 'wrong-key') forgetKey(options.client, id);
      throw error;
    } finally {
      bytes?.fill(0);
    }
  });
}

async function keyByAppliance(
  prelude: Prelude,
  options: DecryptStreamOptions,
  given: readonly RingPrivateKey[] | undefined,
  signal: AbortSignal,
): Promise<{ readonly answer: DecryptAnswer; readonly key: Uint8Array }> {
  const { client, privateKey, keepKeys = true } = options;
  const keyOf = async (answer: DecryptAnswer): Promise<readonly RingPrivateKey[]> =>
    given ?? privateKeysIn(typeof privateKey === 'function' ? await privateKey(answer) : privateKey);
  const { header } = prelude;
  if (prelude.fileVersion === 2) {
    const { answer, fileKey } = await openByRing(prelude, {
      ask: (header) => ask(options, { header }, signal),
      given,
      privateKeysOf: keyOf,
    });
    return { answer, key: fileKey };
  }
  const { answer, bytes } = await askForKey(
    keepKeys ? client : {},
    given ? { privateKeys: given } : {},
    (known) => ask(options, { header, ...known }, signal),
    keyOf,
  );
  // A file encrypted without the private key is never of version 1.
  if (answer.share !== undefined) throw fileFault('bad-header');
  return { answer, key: bytes };
}

/** A whole file or message in bytes, and the appliance's answer about it. */
export interface Whole<Answer> {
  readonly bytes: Uint8Array;
  readonly answer: Answer;
}

/** Encrypts a small message to a kms file. Rejects with any error of `encryptStream`. */
export async function encryptBytes(bytes: Uint8Array, options: EncryptStreamOptions): Promise<Whole<EncryptAnswer>> {
  return whole(bytes, encryptStream(options));
}

/** Decrypts a small kms file; the result is complete and authentic. Rejects with any error of `decryptStream`. */
export async function decryptBytes(file: Uint8Array, options: DecryptStreamOptions): Promise<Whole<DecryptAnswer>>;
export async function decryptBytes(file: Uint8Array, options: OfflineDecryptOptions): Promise<Whole<OfflineAnswer>>;
export async function decryptBytes(
  file: Uint8Array,
  options: DecryptStreamOptions | OfflineDecryptOptions,
): Promise<Whole<DecryptAnswer | OfflineAnswer>> {
  return whole(file, decryption(options));
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
  // Readers of the stream learn of its failure there.
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
  input: InputOf<'decrypt'>,
  signal: AbortSignal,
): Promise<DecryptAnswer> {
  try {
    return await client.decrypt(input, { signal });
  } catch (error) {
    if (!allowInvalidAsset || !(error instanceof KmsError) || error.code !== 'asset-invalid') throw error;
    // Status 422 has the shape of a successful answer: that is the interface.
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

function privateKeysIn(key: PrivateKey): readonly RingPrivateKey[] {
  return readPrivateKeys(key, 'privateKey');
}

interface EncryptFileInput {
  /** The bytes to encrypt, of any length. */
  readonly source: ByteSource;
  /** The ring's key, 32 bytes, unwrapped; in version 2 the file's key. */
  readonly key: Uint8Array;
  /** The header that came with the ring's key; in version 2 the stanzas with the sealed file key. */
  readonly header: string | readonly Stanza[];
  /** Default: the platform's secure generator. */
  readonly random?: (length: number) => Uint8Array;
}

/** The bytes of the file. Throws `invalid` for a malformed key or header; errors of the source are passed on. */
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

interface DecryptFileInput {
  /** The bytes of the file. */
  readonly source: ByteSource;
  /** The key, 32 bytes, or a function that gets it for the file. */
  readonly key: Uint8Array | ((prelude: Prelude) => Promise<Uint8Array>);
}

/**
 * Decrypts the file. Every byte that comes out is authentic; only an end without an error proves that none is missing.
 * Throws what `readPrelude` and `decryptChunks` throw.
 */
export async function* decryptFile({ source, key }: DecryptFileInput): AsyncGenerator<Uint8Array, void, void> {
  const prelude = await readPrelude(source);
  const { context, body } = prelude;
  let bytes: Uint8Array;
  try {
    bytes = typeof key === 'function' ? await key(prelude) : key;
  } catch (error) {
    body.giveUp();
    throw error;
  }
  yield* decryptChunks(body, { key: bytes, context });
}
