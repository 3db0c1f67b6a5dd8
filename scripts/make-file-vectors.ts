// Generates the vectors of the file format, one fault a file, the same each time. Derives the keys and seals the chunks
// itself, with node:crypto, independently of the product.
import { createCipheriv, createHash, createHmac } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import type { FileFault } from '../src/client/file-format.ts';
import { chunkNonce } from '../src/crypto/chunk-keys.ts';

export interface FileVector {
  readonly name: string;
  readonly comment: string;
  readonly expected: 'valid' | FileFault;
  readonly key: Uint8Array;
  readonly file: Uint8Array;
  readonly header?: string;
  readonly message?: Uint8Array;
}

const chunkLength = 16384;
export const key = Buffer.from('YELLOW SUBMARINE YELLOW SUBMARIN');
const otherKey = Buffer.from('ORANGE SUBMARINE ORANGE SUBMARIN');
/** Header lengths of 124 and 258 characters: realistic ones without and with an asset. */
const header = 'AQAB'.repeat(31);
const assetHeader = `${'AQEB'.repeat(64)}AQ`;

function prelude(text = header, { magic = 'kms-file', version = 1, length = text.length } = {}): Buffer {
  return Buffer.concat([
    Buffer.from(magic),
    Buffer.from([version, length >>> 8, length & 255]),
    Buffer.from(text, 'latin1'),
  ]);
}

interface Body {
  readonly head: Buffer;
  readonly chunks: readonly Buffer[];
  /** Seals one more chunk as if it stood at `index`. */
  readonly seal: (index: number, length: number) => Buffer;
  readonly message: Buffer;
}

function chunkKeys(context: Uint8Array, salt: Uint8Array) {
  const info = Buffer.concat([Buffer.from('c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0'), salt, context]);
  const block = (n: number, before: Uint8Array = new Uint8Array()): Buffer =>
    createHmac('sha512', key).update(before).update(info).update(Buffer.of(n)).digest();
  const first = block(1);
  const okm = Uint8Array.from(Buffer.concat([first, block(2, first)]));
  return { key: okm.subarray(0, 32), baseNonce: okm.subarray(32, 44), commitment: okm.subarray(44, 76) };
}

/** A body whose message is the key stream itself, so that the ciphertext is zeros and the file compresses well. */
export function body(context: Uint8Array, messageLength: number): Body {
  const salt = createHash('sha256').update(context).update(String(messageLength)).digest().subarray(0, 24);
  const keys = chunkKeys(context, salt);
  const keyStream = (index: number, length: number): Buffer =>
    createCipheriv('aes-256-gcm', keys.key, chunkNonce(keys.baseNonce, index)).update(Buffer.alloc(length));
  const seal = (index: number, length: number): Buffer => {
    const cipher = createCipheriv('aes-256-gcm', keys.key, chunkNonce(keys.baseNonce, index));
    const sealed = Buffer.concat([cipher.update(keyStream(index, length)), cipher.final()]);
    return Buffer.concat([sealed, cipher.getAuthTag()]);
  };
  const full = Math.floor(messageLength / chunkLength);
  const lengths = [...Array<number>(full).fill(chunkLength), messageLength % chunkLength];
  return {
    head: Buffer.concat([salt, keys.commitment]),
    chunks: lengths.map((length, index) => seal(index, length)),
    seal,
    message: Buffer.concat(lengths.map((length, index) => keyStream(index, length))),
  };
}

export function flip(bytes: Uint8Array, at: number): Buffer {
  const place = at < 0 ? bytes.length + at : at;
  return Buffer.from(bytes.with(place, (bytes[place] ?? 0) ^ 1));
}

/** All vectors, in the order of the checks of docs/file-format.md. */
export function makeFileVectors(): FileVector[] {
  const vectors: FileVector[] = [];
  const valid = (name: string, comment: string, text: string, messageLength: number): void => {
    const context = prelude(text);
    const { head, chunks, message } = body(context, messageLength);
    vectors.push({
      name,
      comment,
      expected: 'valid',
      key,
      file: Buffer.concat([context, head, ...chunks]),
      header: text,
      message,
    });
  };
  const faulty = (expected: FileFault, name: string, comment: string, ...parts: readonly Uint8Array[]): void => {
    const file = Buffer.concat(parts);
    const shown = ['cut', 'wrong-key', 'altered'].includes(expected);
    const text = shown ? { header: file.subarray(11, 11 + file.readUInt16BE(9)).toString('latin1') } : {};
    vectors.push({ name: `${expected}-${name}`, comment, expected, key, file, ...text });
  };

  valid('valid-empty', 'an empty message: one empty chunk', header, 0);
  valid('valid-short', 'a short message', header, 5);
  valid('valid-asset-header', 'a header of the length that comes with an asset', assetHeader, 5);
  valid('valid-shortest-header', 'a header of one character', 'A', 5);
  valid('valid-longest-header', 'a header of 1024 characters, with every character allowed', 'AZaz09-_'.repeat(128), 5);
  valid('valid-longest-last-chunk', 'a message of 16383 bytes: the longest last chunk', header, chunkLength - 1);
  valid('valid-full-chunk', 'a message of 16384 bytes: a full chunk and an empty one', header, chunkLength);
  valid('valid-full-chunk-and-one', 'a message of 16385 bytes', header, chunkLength + 1);
  valid('valid-three-full-chunks', 'a message of 49159 bytes', header, 3 * chunkLength + 7);

  const context = prelude();
  const short = body(context, 5);
  const [last = assertNever()] = short.chunks;
  const whole = [context, short.head, last] as const;

  faulty('not-kms', 'empty', 'an empty file');
  faulty('not-kms', 'text', 'some text', Buffer.from('kms files start with another text'));
  faulty(
    'not-kms',
    'upper-case',
    'the magic string in upper case',
    prelude(header, { magic: 'KMS-FILE' }),
    short.head,
    last,
  );
  faulty('cut-prelude', 'magic', 'cut within the magic string', context.subarray(0, 6));
  faulty('cut-prelude', 'version', 'cut after the magic string', context.subarray(0, 8));
  faulty('unknown-version', '0', 'version 0', prelude(header, { version: 0 }), short.head, last);
  faulty('unknown-version', '3', 'version 3, and nothing after it', context.subarray(0, 8), Buffer.from([3]));
  faulty('cut-prelude', 'length', 'cut within the header length', context.subarray(0, 10));
  faulty('bad-header', 'empty', 'a header length of 0', prelude(''), short.head, last);
  faulty('bad-header', 'long', 'a header length of 1025', prelude('A'.repeat(1025)), short.head, last);
  faulty('cut-prelude', 'header', 'cut within the header', context.subarray(0, -1));
  faulty('bad-header', 'padding', 'a header with padding', prelude(`${header}==`), short.head, last);
  faulty('bad-header', 'latin1', 'a header with a byte that is not ASCII', prelude(`${header}\xe9`), short.head, last);
  faulty('bad-header', 'newline', 'a header with a newline at its end', prelude(`${header}\n`), short.head, last);

  faulty('cut', 'no-body', 'nothing after the prelude', context);
  faulty('cut', 'salt', 'cut within the salt', context, short.head.subarray(0, 23));
  faulty('cut', 'commitment', 'cut within the commitment', context, short.head.subarray(0, 55));
  faulty('wrong-key', 'header', 'a changed character of the header', prelude(`B${header.slice(1)}`), short.head, last);
  faulty('wrong-key', 'salt', 'a changed bit of the salt', context, flip(short.head, 0), last);
  faulty('wrong-key', 'commitment', 'a changed bit of the commitment', context, flip(short.head, -1), last);
  const file = Buffer.concat(whole);
  vectors.push({ name: 'wrong-key-other', comment: 'another key', expected: 'wrong-key', key: otherKey, file, header });
  faulty('cut', 'no-chunk', 'no chunk at all', context, short.head);
  faulty('cut', 'tag', 'cut within the tag of an empty message', context, short.head, short.seal(0, 0).subarray(0, 15));
  faulty('altered', 'ciphertext', 'a changed bit of the ciphertext', context, short.head, flip(last, 0));
  faulty('altered', 'tag', 'a changed bit of the tag', context, short.head, flip(last, -1));
  faulty('altered', 'cut-chunk', 'the last byte missing', context, short.head, last.subarray(0, -1));
  faulty('altered', 'trailing', 'a byte too many', ...whole, Buffer.alloc(1));
  faulty('altered', 'trailing-chunk', 'a sealed chunk after the last one', ...whole, short.seal(1, 5));

  const long = body(context, 2 * chunkLength + 7);
  const [first = assertNever(), second = assertNever(), third = assertNever()] = long.chunks;
  const start = [context, long.head] as const;
  faulty('cut', 'chunk-border', 'the short last chunk is missing', ...start, first, second);
  faulty('cut', 'in-last-tag', 'cut to 15 bytes of the last chunk', ...start, first, second, third.subarray(0, 15));
  faulty(
    'altered',
    'in-second-chunk',
    'cut in the middle of the second chunk',
    ...start,
    first,
    second.subarray(0, 9000),
  );
  faulty('altered', 'second-chunk', 'a changed bit of the second chunk', ...start, first, flip(second, 100), third);
  faulty('altered', 'swapped', 'the first two chunks swapped', ...start, second, first, third);
  faulty('altered', 'doubled', 'the first chunk twice', ...start, first, first, second, third);
  faulty('altered', 'dropped', 'the second chunk missing', ...start, first, third);
  faulty(
    'altered',
    'other-file',
    'the second chunk of another file',
    ...start,
    first,
    body(context, 2 * chunkLength).chunks[1] ?? assertNever(),
    third,
  );
  faulty(
    'altered',
    'full-last-chunk',
    'a full chunk, sealed in its place, between the first and a last one',
    ...start,
    first,
    long.seal(1, 7),
    long.seal(2, 0),
  );
  return vectors;
}

function assertNever(): never {
  throw new Error('a body has the chunks that its length says');
}

/** The text of a vector's file. */
export function vectorText({ comment, expected, key: inputKey, file, header: text, message }: FileVector): string {
  const fields = {
    comment,
    expected,
    key: Buffer.from(inputKey).toString('hex'),
    ...(text === undefined ? {} : { header: text }),
    ...(message && {
      messageLength: message.length,
      messageSha256: createHash('sha256').update(message).digest('hex'),
    }),
    file: deflateSync(file, { level: 9 }).toString('hex'),
  };
  return `${JSON.stringify(fields, undefined, 2)}\n`;
}

if (import.meta.main) {
  const directory = new URL('../test/vectors/kms-file/', import.meta.url);
  mkdirSync(directory, { recursive: true });
  for (const name of readdirSync(directory)) if (name.endsWith('.json')) rmSync(new URL(name, directory));
  for (const vector of makeFileVectors()) writeFileSync(new URL(`${vector.name}.json`, directory), vectorText(vector));
}
