// Generates the vectors of version 2 of the file format, one fault a file, the same each time. Uses the product's own
// sealing to rings; docs/open-file/open.py is the independent check.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { encodePrelude, type FileFault, type Stanza } from '../src/client/file-format.ts';
import { sealFileKey } from '../src/crypto/recipient.ts';
import { xWingPublicKey } from '../src/crypto/x-wing.ts';
import { publicFromPrivate } from '../src/crypto/x25519.ts';
import { body, flip, key } from './make-file-vectors.ts';

export interface RecipientVector {
  readonly name: string;
  readonly comment: string;
  readonly expected: 'valid' | FileFault;
  readonly kem: 'x25519' | 'mlkem768-x25519';
  readonly privateKey: Uint8Array;
  /** File key shares by header; none for a file that is opened offline. */
  readonly shares: Readonly<Record<string, Uint8Array>>;
  readonly file: Uint8Array;
  readonly message?: Uint8Array;
}

/** Bytes that count up from `first`. */
function counter(first: number): (length: number) => Uint8Array {
  let at = first;
  return (length) => Uint8Array.from({ length }, () => at++ & 0xff);
}

const privateKey = counter(0x01)(32);
const otherPrivateKey = counter(0x61)(32);
const header = `${'AQIB'.repeat(29)}AQI`;
const otherHeader = `${'AQIC'.repeat(29)}AQI`;
const share = counter(0xa0)(32);
const otherShare = counter(0xc0)(32);
const shares = { [header]: share, [otherHeader]: otherShare };

interface Sealing {
  readonly to?: Uint8Array;
  readonly isHybrid?: boolean;
  readonly isOffline?: boolean;
  readonly fileKey?: Uint8Array;
}

async function stanza(text: string, first: number, sealing: Sealing = {}): Promise<Stanza> {
  const { to = privateKey, isHybrid = false, isOffline = false, fileKey = key } = sealing;
  const publicKey = isHybrid ? xWingPublicKey(to) : publicFromPrivate(to);
  const ring = { header: text, publicKey, share: shares[text] ?? share };
  return { header: text, ...(await sealFileKey({ ...ring, fileKey, isOffline, random: counter(first) })) };
}

/** All vectors, in the order of the checks of docs/file-format.md. */
export async function makeRecipientVectors(): Promise<RecipientVector[]> {
  const vectors: RecipientVector[] = [];
  const add = (vector: Omit<RecipientVector, 'kem' | 'privateKey' | 'shares'> & Partial<RecipientVector>): void => {
    vectors.push({ kem: 'x25519', privateKey, shares, ...vector });
  };
  const one = await stanza(header, 0x10);
  const two = await stanza(otherHeader, 0x30, { to: otherPrivateKey });
  const hybrid = await stanza(header, 0x50, { isHybrid: true });
  const offline = await stanza(header, 0x70, { isOffline: true });

  type More = Partial<RecipientVector> & { readonly messageLength?: number };
  const valid = (name: string, comment: string, stanzas: readonly Stanza[], more: More = {}): void => {
    const { messageLength = 5, ...rest } = more;
    const context = encodePrelude(stanzas);
    const { head, chunks, message } = body(context, messageLength);
    add({ name, comment, expected: 'valid', file: Buffer.concat([context, head, ...chunks]), message, ...rest });
  };
  valid('valid-one', 'a file for one ring', [one]);
  valid('valid-empty', 'an empty message', [one], { messageLength: 0 });
  valid('valid-two-chunks', 'a message of 16389 bytes', [one], { messageLength: 16_389 });
  valid('valid-hybrid', 'a file for one hybrid ring', [hybrid], { kem: 'mlkem768-x25519' });
  valid('valid-first-of-two', 'a file for two rings, opened by the first', [one, two]);
  valid('valid-second-of-two', 'a file for two rings, opened by the second', [one, two], {
    privateKey: otherPrivateKey,
  });
  valid('valid-offline', 'a file that opens offline: the share is sealed too', [offline], { shares: {} });
  const unknown = { ...two, kem: 0x0030, sealed: counter(0)(99) };
  valid('valid-unknown-kem', 'the first ring has a KEM that nobody knows yet', [unknown, one]);
  const twenty = Array.from({ length: 19 }, (_, n) => ({ ...unknown, header: `${otherHeader}${n}` }));
  valid('valid-twenty', 'as many rings as there can be', [...twenty, one]);

  const context = encodePrelude([one]);
  const short = body(context, 5);
  const rest = Buffer.concat([short.head, ...short.chunks]);
  const faulty = (expected: FileFault, name: string, comment: string, file: Uint8Array, more: More = {}): void =>
    add({ name: `${expected}-${name}`, comment, expected, file, ...more });
  /** The file with other bytes at `at`. */
  const with_ = (at: number, ...bytes: readonly number[]): Buffer => {
    const changed = Buffer.concat([context, rest]);
    changed.set(bytes, at);
    return changed;
  };
  const kemAt = 12 + header.length;
  const sealedAt = kemAt + 4;
  const wrappedAt = sealedAt + one.sealed.length;

  for (const [name, end] of [
    ['version', 8],
    ['count', 9],
    ['header-length', 11],
    ['header', 20],
    ['kem', kemAt + 1],
    ['sealed-length', kemAt + 3],
    ['sealed', wrappedAt - 1],
    ['wrapped', wrappedAt + 47],
  ] as const) {
    faulty('cut-prelude', name, `cut at the ${name.replace('-', ' ')}`, context.subarray(0, end));
  }
  faulty('cut-prelude', 'second', 'one stanza where two are announced', with_(9, 2).subarray(0, context.length));
  faulty('bad-header', 'none', 'no stanza', with_(9, 0));
  faulty('bad-header', 'many', '21 stanzas', with_(9, 21));
  faulty('bad-header', 'empty', 'a header length of 0', with_(10, 0, 0));
  faulty('bad-header', 'long', 'a header length of 1025', with_(10, 4, 1));
  faulty('bad-header', 'padding', 'a header with a character that is not allowed', with_(12, 0x3d));
  faulty('bad-header', 'sealed-length', 'a length that the KEM never has', with_(kemAt + 2, 0, 81));
  faulty('bad-header', 'nothing-sealed', 'a sealed length of 0, of a KEM that nobody knows', with_(kemAt, 0, 48, 0, 0));
  faulty(
    'bad-header',
    'much-sealed',
    'a sealed length of 4097, of a KEM that nobody knows',
    with_(kemAt, 0, 48, 16, 1),
  );
  const twice = Buffer.concat([context.with(9, 2), context.subarray(10), rest]);
  faulty('bad-header', 'twice', 'the same header twice', twice);

  faulty('wrong-private-key', 'other', 'another private key', Buffer.concat([context, rest]), {
    privateKey: otherPrivateKey,
  });
  faulty('wrong-private-key', 'header', 'a changed character of the header', with_(12, 0x42));
  faulty('wrong-private-key', 'enc', 'a changed bit of the encapsulated key', flip(with_(9, 1), sealedAt));
  faulty('wrong-private-key', 'sealed', 'a changed bit of the sealed secret', flip(with_(9, 1), wrappedAt - 1));
  const moved = Buffer.concat([encodePrelude([{ ...one, header: otherHeader }]), rest]);
  faulty('wrong-private-key', 'moved-header', 'the header of another file', moved);
  const unknownAlone = encodePrelude([unknown]);
  faulty('unknown-version', 'kem', 'no ring but one with a KEM that nobody knows', Buffer.concat([unknownAlone, rest]));

  faulty('wrong-key', 'share', 'another share', Buffer.concat([context, rest]), { shares: { [header]: otherShare } });
  faulty('wrong-key', 'wrapped', 'a changed bit of the wrapped key', flip(with_(9, 1), wrappedAt));
  faulty('wrong-key', 'salt', 'a changed bit of the salt', flip(with_(9, 1), context.length));
  faulty('wrong-key', 'commitment', 'a changed bit of the commitment', flip(with_(9, 1), context.length + 55));
  faulty(
    'wrong-key',
    'ring-added',
    'a stanza that was put to it later',
    Buffer.concat([encodePrelude([one, two]), rest]),
  );
  const both = encodePrelude([one, two]);
  const ofBoth = body(both, 5);
  const forBoth = Buffer.concat([ofBoth.head, ...ofBoth.chunks]);
  faulty('wrong-key', 'ring-removed', 'one of two stanzas taken away', Buffer.concat([context, forBoth]));
  const swapped = Buffer.concat([encodePrelude([two, one]), forBoth]);
  faulty('wrong-key', 'rings-swapped', 'two stanzas in the other order', swapped);
  const foreign = await stanza(header, 0x10, { fileKey: otherShare });
  faulty('wrong-key', 'other-file', 'the stanza of another file', Buffer.concat([encodePrelude([foreign]), rest]));
  // A malicious writer wants it to decrypt to one text for the first ring and to another for the second.
  const torn = encodePrelude([one, await stanza(otherHeader, 0x30, { to: otherPrivateKey, fileKey: otherShare })]);
  const ofTorn = body(torn, 5);
  const forTorn = Buffer.concat([torn, ofTorn.head, ...ofTorn.chunks]);
  faulty('wrong-key', 'two-keys', 'two rings with different file keys: at the second', forTorn, {
    privateKey: otherPrivateKey,
  });

  faulty('cut', 'no-body', 'nothing after the prelude', context);
  faulty('cut', 'no-chunk', 'no chunk at all', Buffer.concat([context, short.head]));
  faulty('altered', 'chunk', 'a changed bit of the ciphertext', flip(with_(9, 1), context.length + 56));
  faulty('altered', 'tag', 'a changed bit of the tag', flip(with_(9, 1), -1));
  return vectors;
}

/** The text of a vector's file. */
export function recipientVectorText(vector: RecipientVector): string {
  const { comment, expected, kem, privateKey, shares, message, file } = vector;
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
  const fields = {
    comment,
    expected,
    kem,
    privateKey: hex(privateKey),
    shares: Object.fromEntries(Object.entries(shares).map(([text, bytes]) => [text, hex(bytes)])),
    ...(message && {
      messageLength: message.length,
      messageSha256: createHash('sha256').update(message).digest('hex'),
    }),
    file: hex(deflateSync(file, { level: 9 })),
  };
  return `${JSON.stringify(fields, undefined, 2)}\n`;
}

if (import.meta.main) {
  const directory = new URL('../test/vectors/kms-file-2/', import.meta.url);
  mkdirSync(directory, { recursive: true });
  for (const name of readdirSync(directory)) rmSync(new URL(name, directory));
  for (const vector of await makeRecipientVectors()) {
    writeFileSync(new URL(`${vector.name}.json`, directory), recipientVectorText(vector));
  }
}
