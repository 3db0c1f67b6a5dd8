// Generates test/vectors/activity/verdicts.json: heads and exports as a hostile appliance could return them, one oddity
// each, with the only verdict that a verifier may reach (docs/activity-export.md). Needs the export of
// make-activity-vectors.ts.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { ed25519 } from '@noble/curves/ed25519.js';
import { concatBytes, fromBase64, toBase64, utf8 } from '../src/crypto/bytes.ts';
import { ed25519PublicKey, ed25519Sign, ed25519ToSpki } from '../src/crypto/ed25519.ts';
import { mlDsaSign } from '../src/crypto/ml-dsa.ts';

const dir = new URL('../test/vectors/activity/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, dir), 'utf8');
const own = JSON.parse(read('head-5.json'));
const whole = 'valid.jsonl';
const later = 'later.jsonl';
const lines = read(whole).trimEnd().split('\n');
/** The hashed part of each line. */
const texts = lines.map((line) => `{${line.slice(54)}`);

const { Point } = ed25519;
const torsion = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');
const little = (bytes: Uint8Array): bigint => BigInt(`0x${bytes.toReversed().toHex()}`);
const toLittle = (n: bigint): Uint8Array => Uint8Array.fromHex(n.toString(16).padStart(64, '0')).reverse();
const sha512 = (...parts: Uint8Array[]): Uint8Array =>
  createHash('sha512')
    .update(concatBytes(...parts))
    .digest();
const order = Point.Fn.ORDER;

export interface Verdict {
  readonly name: string;
  /** Name of a file beside this one, or bytes in base64. */
  readonly export: string;
  readonly head?: string;
  readonly publicKey?: string;
  readonly valid: boolean;
  /** The last record, if the export verifies. */
  readonly upTo?: number;
  /** The record that a verifier names; absent if there is no usable head. */
  readonly record?: number;
  /** The last record that retention dropped, as the first line of an export that verifies states it. */
  readonly dropped?: number;
  /** The verdict of verifiers that support this signature scheme; others report that they don't. */
  readonly needs?: 'ML-DSA-65';
}

const verdicts: Verdict[] = [];

/** Private key of an impostor, who can sign a head with any content. */
const seed = new Uint8Array(32).fill(9);
const keyOf = (point: Uint8Array): string => toBase64(ed25519ToSpki(point));
const theirs = keyOf(ed25519PublicKey(seed));

type Fields = Record<string, unknown>;

function messageOf({ format, tenant, seq, hash, signedAt }: Fields): Uint8Array {
  return utf8(`${format}\n${tenant}\n${seq}\n${hash}\n${signedAt}\n`);
}

/** A head whose signature fits its content, except that `over` replaces fields of the signed message only. */
function signed(fields: Fields, over: Fields = {}): Fields {
  const head = { ...own, publicKey: theirs, ...fields };
  return { ...head, signature: toBase64(ed25519Sign(seed, messageOf({ ...head, ...over }))) };
}

const json = (value: unknown): string => JSON.stringify(value, null, 2);
const encoded = (content: string | Uint8Array): string =>
  toBase64(typeof content === 'string' ? utf8(content) : content);

interface HeadCase {
  readonly file?: string;
  readonly publicKey?: string;
  /** The last record of a valid head; otherwise `record` is the record named, absent if the input is no head. */
  readonly upTo?: number;
  readonly record?: number;
  readonly needs?: 'ML-DSA-65';
}

function head(name: string, content: Fields | string | Uint8Array, { file = whole, ...rest }: HeadCase = {}): void {
  const text = typeof content === 'string' || content instanceof Uint8Array ? content : json(content);
  verdicts.push({ name, export: file, head: encoded(text), valid: rest.upTo !== undefined, ...rest });
}
const good = { upTo: 8 };

// Keys and tenants.
head('the head as it was made', own, good);
head('with the key that was noted', own, { publicKey: own.publicKey, ...good });
head('with another key than was noted', own, { publicKey: theirs, record: 5 });
head('of another key, which nobody noted', signed({}), good);
head('of another key than was noted', signed({}), { publicKey: own.publicKey, record: 5 });
const elsewhere = { tenant: 'tenant_01kdyjk84e0000000000000001', hash: toHash('another log') };
head("of another tenant's log", signed(elsewhere), { record: 5 });
head('the tenant changed', { ...own, tenant: elsewhere.tenant }, { record: 5 });

// Signed fields.
head('seq changed', { ...own, seq: 6 }, { record: 6 });
head('seq wrong, and signed', signed({ seq: 6 }), { record: 6 });
head('hash changed', { ...own, hash: elsewhere.hash }, { record: 5 });
head('hash wrong, and signed', signed({ hash: elsewhere.hash }), { record: 5 });
head('the time changed', { ...own, signedAt: '2026-01-02T03:05:05.679Z' }, { record: 5 });
head(
  'a bit of the signature changed',
  { ...own, signature: changedSignature((bytes) => void bytes.set([(bytes[3] ?? 0) ^ 1], 3)) },
  { record: 5 },
);
head('no signature but zeros', { ...own, signature: toBase64(new Uint8Array(64)) }, { record: 5 });
head('S + L in the place of S', { ...own, signature: changedSignature(addOrder) }, { record: 5 });
head('seq 8 beyond a cut export', signed({ seq: 8, hash: lineHash(8) }), { file: 'cut.jsonl', record: 8 });
head('seq 0', signed({ seq: 0, hash: toHash(undefined) }), good);
head('seq 0, and an export that begins later', signed({ seq: 0, hash: toHash(undefined) }), { file: later, record: 1 });
head('seq 0 with a hash of its own', signed({ seq: 0, hash: elsewhere.hash }));
head('the largest seq', signed({ seq: Number.MAX_SAFE_INTEGER }), { record: Number.MAX_SAFE_INTEGER });

// ML-DSA-65 beside Ed25519.
const hybrid: Fields = JSON.parse(read('head-5-ml-dsa-65.json'));
const noted = createHash('sha256')
  .update(Buffer.from(String(hybrid.mlDsaPublicKey), 'base64'))
  .digest('hex');
const needs = 'ML-DSA-65';

/** Signs as an impostor who has both keys. */
function signedTwice(fields: Fields, over: Fields = {}): Fields {
  const one = signed(fields);
  const { spki, signature } = mlDsaSign(seed, messageOf({ ...one, ...over }));
  return { ...one, mlDsaPublicKey: toBase64(spki), mlDsaSignature: toBase64(signature) };
}

function changedText(text: unknown, at: number, to: string): string {
  return String(text).slice(0, at) + to + String(text).slice(at + to.length);
}
const { mlDsaPublicKey, mlDsaSignature } = hybrid;
head('with ML-DSA-65', hybrid, { ...good, needs });
head('with ML-DSA-65, and the key of Ed25519 that was noted', hybrid, { publicKey: own.publicKey, ...good, needs });
head('with ML-DSA-65, and the key of that that was noted', hybrid, { publicKey: noted, ...good, needs });
head('with another key of ML-DSA-65 than was noted', signedTwice({}), { publicKey: noted, record: 5 });
head('without the key of ML-DSA-65 that was noted', own, { publicKey: noted, record: 5 });
head(
  'its SHA-256 in a field of its own',
  { ...own, sha256: noted, checked: true, mlDsa: noted },
  { publicKey: noted, record: 5 },
);
head('with ML-DSA-65 by another, which nobody noted', signedTwice({}), { ...good, needs });
head('another message signed with ML-DSA-65', signedTwice({}, { seq: 4 }), { record: 5, needs });
head(
  'a signature by ML-DSA-65 of another key',
  { ...hybrid, mlDsaPublicKey: signedTwice({}).mlDsaPublicKey },
  { record: 5, needs },
);
head(
  'a bit of the signature by ML-DSA-65 changed',
  { ...hybrid, mlDsaSignature: changedText(mlDsaSignature, 100, 'AAAA') },
  { record: 5, needs },
);
head(
  'the hints of the signature by ML-DSA-65 changed',
  { ...hybrid, mlDsaSignature: changedText(mlDsaSignature, 4404, 'zz') },
  { record: 5, needs },
);
head(
  'forged with Ed25519, sound with ML-DSA-65',
  { ...hybrid, signature: changedText(own.signature, 0, 'AAAA') },
  { record: 5 },
);
head('a key of ML-DSA-65 alone', without(hybrid, 'mlDsaSignature'));
head('a signature by ML-DSA-65 alone', without(hybrid, 'mlDsaPublicKey'));
head('ML-DSA-65 with null', { ...own, mlDsaPublicKey: null, mlDsaSignature: null });
head('ML-DSA-65 with empty texts', { ...own, mlDsaPublicKey: '', mlDsaSignature: '' });
head('a key of Ed25519 for ML-DSA-65', { ...hybrid, mlDsaPublicKey: own.publicKey });
head('a key of ML-DSA-87 by its name', { ...hybrid, mlDsaPublicKey: changedText(mlDsaPublicKey, 20, 'BMDg') });
head('a signature by ML-DSA-65 with a byte less', { ...hybrid, mlDsaSignature: String(mlDsaSignature).slice(0, -4) });
head('white space in a signature by ML-DSA-65', { ...hybrid, mlDsaSignature: `${mlDsaSignature}\n` });

// Points and scalars on which implementations of Ed25519 differ.
const secret = 123456789n;

/** A signature crafted to pass under lax rules: A and R as given, S = r + k·a. */
function crafted(a: Uint8Array, r: Uint8Array, rScalar: bigint, aScalar: bigint, fields: Fields = {}): Fields {
  const body = { ...own, ...fields, publicKey: keyOf(a) };
  const k = little(sha512(r, a, messageOf(body))) % order;
  return { ...body, signature: toBase64(concatBytes(r, toLittle((rScalar + k * aScalar) % order))) };
}
const base = Point.BASE;
const honest = base.multiply(secret).toBytes();
const nonce = base.multiply(77n).toBytes();
const zero = Point.ZERO.toBytes();
const identityAbove = toLittle(2n ** 255n - 19n + 1n);
const negativeIdentity = toLittle(1n + 2n ** 255n);
head('crafted as it should be', crafted(honest, nonce, 77n, secret), good);
head('a key of small order, which signs everything', crafted(zero, nonce, 77n, 0n), { record: 5 });
head('the same, not canonical', crafted(identityAbove, nonce, 77n, 0n), { record: 5 });
head('the same, with a sign', crafted(negativeIdentity, nonce, 77n, 0n), { record: 5 });
head('R of small order', crafted(honest, zero, 0n, secret), { record: 5 });
head('R of small order, not canonical', crafted(honest, identityAbove, 0n, secret), { record: 5 });
const mixed = base.multiply(secret).add(torsion).toBytes();
const minute = (n: number): Fields => ({ signedAt: `2026-01-02T03:${String(n).padStart(2, '0')}:05.678Z` });
const challenge = (n: number): bigint => little(sha512(nonce, mixed, messageOf({ ...own, ...minute(n) }))) % order;
const minutes = Array.from({ length: 60 }, (_, n) => n);
const onlyWithCofactor = minutes.find((n) => challenge(n) % 8n !== 0n) ?? 0;
const withoutToo = minutes.find((n) => challenge(n) % 8n === 0n) ?? 0;
head('a mixed key, good with the cofactor alone', crafted(mixed, nonce, 77n, secret, minute(onlyWithCofactor)), {
  record: 5,
});
head('a mixed key, good without the cofactor', crafted(mixed, nonce, 77n, secret, minute(withoutToo)), good);
const mixedNonce = base.multiply(77n).add(torsion).toBytes();
head('a mixed R', crafted(honest, mixedNonce, 77n, secret), { record: 5 });

// Encodings of bytes.
head('a spare bit of the signature', { ...own, signature: own.signature.replace('g==', 'h==') });
head('a signature without padding', { ...own, signature: own.signature.replace('==', '') });
head('a signature with too much padding', { ...own, signature: `${own.signature}====` });
head('a signature and a line feed', { ...own, signature: `${own.signature}\n` });
head('a signature with white space in it', { ...own, signature: own.signature.replace('+', ' +') });
head('a signature in base64url', { ...own, signature: own.signature.replaceAll('+', '-').replaceAll('/', '_') });
head('a signature of 63 bytes', { ...own, signature: toBase64(new Uint8Array(63)) });
head('an empty signature', { ...own, signature: '' });
head('a public key that is the bare 32 bytes', {
  ...own,
  publicKey: toBase64((fromBase64(own.publicKey) ?? zero).subarray(12)),
});
head('a public key of X25519', { ...own, publicKey: own.publicKey.replace('MCowBQYDK2Vw', 'MCowBQYDK2Vu') });
head('a public key with padding behind it', { ...own, publicKey: `${own.publicKey}====` });
head('a public key in PEM', {
  ...own,
  publicKey: `-----BEGIN PUBLIC KEY-----\n${own.publicKey}\n-----END PUBLIC KEY-----\n`,
});
head('a spare bit of the hash', signed({ hash: own.hash.replace(/Q$/, 'R') }));
head('a hash with padding', signed({ hash: `${own.hash}=` }));
head('a hash in base64', signed({ hash: lineHash(8).replaceAll('-', '+').replaceAll('_', '/'), seq: 8 }));

// Fields that are missing, of another type, or unknown.
for (const name of Object.keys(own)) {
  head(`no ${name}`, without(own, name));
  for (const other of [null, true, 5.5, [own[name]], { a: 1 }]) {
    head(`${name}: ${JSON.stringify(other)}`, { ...own, [name]: other });
  }
  if (name !== 'seq') head(`${name}: 5`, { ...own, [name]: 5 });
}
head('another format', signed({ format: 'kms-activity-head-2' }));
head('an empty tenant', signed({ tenant: '' }));
head('a tenant with a line feed', signed({ tenant: `${own.tenant}\n5` }));
head('a tenant with a letter beyond ASCII', signed({ tenant: 'tenant_ü' }));
head('a lone surrogate, signed as U+FFFD', json(signed({ tenant: 'tenant_\ufffd' })).replace('\ufffd', '\\ud800'));
head('a tenant of 101 characters', signed({ tenant: 't'.repeat(101) }));
head('a time without milliseconds', signed({ signedAt: '2026-01-02T03:05:05Z' }));
head('a time elsewhere', signed({ signedAt: '2026-01-02T03:05:05.678+00:00' }));
head('a time and a line feed', signed({ signedAt: `${own.signedAt}\n` }));
head('a time in other digits', signed({ signedAt: own.signedAt.replace('2026', '٢٠٢٦') }));
head('a text where the number stands', signed({ seq: '5' }));
for (const seq of ['5.0', '5e0', '0.5E+1', '4.9999999999999999999']) head(`seq ${seq}`, withSeq(own, seq), good);
for (const seq of [
  '-5',
  '1e400',
  '-1e400',
  '9007199254740992',
  '9007199254740993',
  '1'.repeat(5000),
  '05',
  '+5',
  '5.',
  '0x5',
  'NaN',
  'Infinity',
  '-Infinity',
])
  head(`seq ${seq.slice(0, 24)}`, withSeq(signed({}, { seq: Number(seq) }), seq));
head('seq -0', withSeq(signed({ seq: 0, hash: toHash(undefined) }), '-0', 0), good);
head('seq -0.0', withSeq(signed({ seq: 0, hash: toHash(undefined) }), '-0.0', 0), good);
head('fields of its own', { note: 'from the ticket of January', count: 1.5, none: null, is: true, ...own }, good);
head('a field of its own, not flat', { ...own, note: [] });
head('a field of its own with fields', { ...own, note: { by: 'me' } });
head('a field named __proto__', json(own).replace('{', '{"__proto__": 1,'), good);
head('a field named __proto__, not flat', json(own).replace('{', '{"__proto__": {"seq": 5},'));
head('everything in __proto__', `{"__proto__": ${json(own)}}`);
head('30,000 nested arrays', json(own).replace('{', `{"note": ${'['.repeat(30_000)}${']'.repeat(30_000)},`));
head('a lone surrogate in a field of its own', json(own).replace('{', '{"note": "\\ud800",'), good);
head('bytes that are no UTF-8 in a field of its own', Buffer.from(json({ note: '\u00ff', ...own }), 'latin1'), good);

// JSON syntax.
head('seq twice, the last one good', json(own).replace('{', '{"seq": 7,'), good);
head('seq twice, the first one good', json(own).replace(/}$/, ',"seq": 6}'), { record: 6 });
head('the signature twice, the last one no text', json(own).replace(/}$/, ',"signature": 6}'));
head('a byte order mark in front', `\ufeff${json(own)}`, good);
head('two byte order marks', `\ufeff\ufeff${json(own)}`);
head('white space around', `\r\n\t ${json(own)}\t \r\n`, good);
head('a no-break space in front', `\u00a0${json(own)}`);
head('a form feed in front', `\f${json(own)}`);
head('a vertical tab behind', `${json(own)}\v`);
head('a NUL behind', `${json(own)}\0`);
head('a comma too many', json(own).replace(/\n}$/, ',}'));
head('a comment', json(own).replace('{', '{ /* mine */'));
head('single quotes', json(own).replaceAll('"', "'"));
head('NaN in a field of its own', json(own).replace('{', '{"note": NaN,'));
head('a tab in a text', json({ note: 'a b', ...own }).replace('a b', 'a\tb'));
head('two heads', json(own) + json(own));
head('a list of heads', json([own]));
head('in UTF-16', Buffer.from(json(own), 'utf16le'));
for (const text of ['', ' ', 'null', '5', '"a head"', '[]', '{}', '{', 'undefined'])
  head(`the text ${text || 'nothing'}`, text);
head('more than 64 KiB', `${json(own)}${' '.repeat(65_536)}`);

// Exports.
function chained(...given: (string | Uint8Array)[]): Uint8Array {
  let hash: Uint8Array = new Uint8Array(32);
  return concatBytes(
    ...given.map((each) => {
      const text = typeof each === 'string' ? utf8(each) : each;
      hash = createHash('sha256').update(hash).update(text).digest();
      return concatBytes(utf8(`{"hash":"${Buffer.from(hash).toString('base64url')}",`), text.subarray(1), utf8('\n'));
    }),
  );
}

function log(name: string, content: string | Uint8Array, rest: { upTo?: number; record?: number }): void {
  verdicts.push({ name, export: encoded(content), valid: rest.upTo !== undefined, ...rest });
}

/** Two good records with another between them; all hashes match. */
const [first = '', second = '', third = ''] = texts;
const between = (text: string | Uint8Array): Uint8Array => chained(first, text, third);
const text = read(whole);
const three = { upTo: 3 };
const atTwo = { record: 2 };
const nested = (levels: number): string =>
  second.replace(',"ringname"', `,"props":{"a":${'['.repeat(levels)}${']'.repeat(levels)}},"ringname"`);

log('made by these means', between(second), three);
log('nothing', '', { record: 1 });
log('one line feed', '\n', { record: 1 });
log('no line feed at the end', text.slice(0, -1), { upTo: 8 });
log('two line feeds at the end', `${text}\n`, { record: 9 });
log('an empty line', text.replace('\n', '\n\n'), atTwo);
log('line ends of Windows', text.replaceAll('\n', '\r\n'), { record: 1 });
log('a byte order mark', `\ufeff${text}`, { record: 1 });
log('in UTF-16', Buffer.from(text, 'utf16le'), { record: 1 });
log('a last line that is cut', text.slice(0, -20), { record: 8 });
log('white space behind a line', text.replace('\n', ' \n'), { record: 1 });
log('white space in front of a line', text.replace('\n', '\n '), atTwo);
log('white space behind the hash', text.replace('",', '", '), { record: 1 });
log('a line without a hash', [lines[0], texts[1], lines[2]].join('\n'), atTwo);
log('a hash with padding', text.replace('",', '=",'), { record: 1 });
log(
  'a spare bit of a hash',
  text.replace(/^(.{51})(.)/, (_, rest, last) => rest + spare(last)),
  { record: 1 },
);
log(
  'a hash in upper case',
  text.replace(/^(.{9})(.{43})/, (_, rest, hash) => rest + hash.toUpperCase()),
  { record: 1 },
);
log('two records in a line', lines.slice(0, 2).join(''), { record: 1 });
log('a comma too many', between(second.replace(/}$/, ',}')), atTwo);
log('no JSON behind the record', between(`${second}}`), atTwo);
log('NaN', between(second.replace('"status":200', '"status":NaN')), atTwo);
log('Infinity', between(second.replace('"status":200', '"status":Infinity')), atTwo);
log('a number beyond all', between(second.replace('"status":200', '"status":1e400')), three);
log('a number with 5,000 digits', between(second.replace('"status":200', `"status":${'1'.repeat(5000)}`)), three);
log('a zero in front', between(second.replace('"status":200', '"status":0200')), atTwo);
for (const seq of ['2.0', '2e0', '0.2e1']) log(`seq ${seq}`, between(second.replace('"seq":2', `"seq":${seq}`)), three);
for (const seq of ['"2"', 'true', 'null', '[2]', '2.5', '3', '1', '0', '-2', '1e400', '9007199254740993'])
  log(`seq ${seq}`, between(second.replace('"seq":2', `"seq":${seq}`)), atTwo);
log('seq true as the first', chained(first.replace('"seq":1', '"seq":true')), { record: 1 });
log('no seq', between(second.replace('"seq":2,', '')), atTwo);
log(
  'seq in the props alone',
  between(second.replace('"seq":2,', '').replace(',"ringname"', ',"props":{"seq":2},"ringname"')),
  atTwo,
);
log('seq in __proto__ alone', between(second.replace('"seq":2', '"__proto__":{"seq":2}')), atTwo);
log('seq twice, the last one good', between(second.replace('"seq":2', '"seq":7,"seq":2')), three);
log('seq twice, the first one good', between(second.replace('"seq":2', '"seq":2,"seq":7')), atTwo);
log('nothing but seq', between('{"seq":2}'), three);
for (const [name, other] of [
  ['status', 'null'],
  ['validAction', '"yes"'],
  ['createdAt', '{}'],
  ['ringname', '[]'],
]) {
  const value = new RegExp(`"${name}":("[^"]*"|[a-z0-9]+)`);
  log(`${name}: ${other}`, between(second.replace(value, `"${name}":${other}`)), three);
}
log('props: null', between(second.replace(',"ringname"', ',"props":null,"ringname"')), three);
log('a field of its own', between(second.replace('"id"', '"further":[1],"id"')), three);
log('a lone surrogate', between(second.replace('"ringname":"payroll"', '"ringname":"\\ud800"')), three);
log('a surrogate as bytes', between(bytesOf(second, [0xed, 0xa0, 0x80])), atTwo);
log('bytes that are no UTF-8', between(bytesOf(second, [0xff])), atTwo);
log('an overlong NUL', between(bytesOf(second, [0xc0, 0x80])), atTwo);
log('a NUL', between(bytesOf(second, [0])), atTwo);
log('a tab in a text', between(bytesOf(second, [9])), atTwo);
log('a line separator in a text', between(second.replace('payroll', 'pay\u2028roll')), three);
log('a byte order mark in a text', between(second.replace('payroll', '\ufeffpayroll')), three);
log('nested as deep as may be', between(nested(63)), three);
log('nested one deeper', between(nested(64)), atTwo);
log('nested 30,000 deep', between(nested(30_000)), atTwo);
log('brackets in a text', between(second.replace('payroll', '[{'.repeat(3000))), three);
log('after the largest seq', chained(first.replace('"seq":1', '"seq":9007199254740992')), { record: 1 });

// Exports whose beginning retention dropped: they start with the head of the last dropped record.
interface KeptCase {
  /** A head that the auditor kept. */
  readonly since?: Fields;
  readonly publicKey?: string;
  readonly upTo?: number;
  readonly record?: number;
  readonly dropped?: number;
}

function kept(
  name: string,
  lead: Fields | string | Uint8Array,
  after: string | Uint8Array,
  { since, ...rest }: KeptCase,
): void {
  const front = lead instanceof Uint8Array ? lead : utf8(typeof lead === 'string' ? lead : JSON.stringify(lead));
  const bytes = concatBytes(front, utf8('\n'), typeof after === 'string' ? utf8(after) : after);
  verdicts.push({
    name: `kept: ${name}`,
    export: encoded(bytes),
    ...(since && { head: encoded(json(since)) }),
    valid: rest.upTo !== undefined,
    ...rest,
  });
}
const fromSix = lines
  .slice(5)
  .map((line) => `${line}\n`)
  .join('');
const since8 = JSON.parse(read('head-8.json'));
const early = signed({ seq: 3, hash: lineHash(3) });
const dropped5 = { upTo: 8, dropped: 5 };
const oneLine = JSON.stringify(own);

kept('as it should be', own, fromSix, dropped5);
kept('nothing behind it', own, '', { upTo: 5, dropped: 5 });
kept('nothing was dropped', signed({ seq: 0, hash: toHash(undefined) }), text, { upTo: 8, dropped: 0 });
kept('with a later head', own, fromSix, { since: since8, publicKey: own.publicKey, ...dropped5 });
kept('with its own head', own, fromSix, { since: own, publicKey: own.publicKey, ...dropped5 });
kept('with an earlier head', own, fromSix, { since: early, ...dropped5 });
kept('with an earlier head of a key that it lacks', own, fromSix, { since: early, publicKey: theirs, record: 5 });
kept('with a later head of a key that it lacks', own, fromSix, {
  since: signed({ seq: 8, hash: lineHash(8) }),
  publicKey: theirs,
  ...dropped5,
});
kept('of another key than was noted', signed({}), fromSix, { since: early, publicKey: own.publicKey, record: 3 });
kept('a forged signature', { ...own, signedAt: '2026-01-02T03:05:05.679Z' }, fromSix, { record: 5 });
kept('a forged signature, with a later head', { ...own, signature: toBase64(new Uint8Array(64)) }, fromSix, {
  since: since8,
  record: 5,
});
kept('the hash wrong, and signed', signed({ hash: elsewhere.hash }), fromSix, { record: 6 });
kept('another hash than that of its own head', signed({ hash: elsewhere.hash }), fromSix, { since: own, record: 5 });
kept('a history written anew behind it', signed({ hash: toHash(undefined) }), chained(...texts.slice(5)), {
  since: since8,
  record: 8,
});
kept('of another tenant than the head', signed({ tenant: elsewhere.tenant }), fromSix, { since: own, record: 5 });
kept('a record is missing behind it', signed({ seq: 4, hash: lineHash(4) }), fromSix, { record: 5 });
kept('a record stands there that was dropped', own, lines.slice(4).join('\n'), { record: 6 });
kept('the end is cut off', own, lines[5] ?? '', { since: since8, record: 8 });
kept('behind a record', lines[0] ?? '', `${oneLine}\n`, { record: 2 });
kept('twice', own, `${oneLine}\n${fromSix}`, { record: 6 });
kept('seq 5.0', oneLine.replace('"seq":5', '"seq":5.0'), fromSix, dropped5);
kept('seq twice, the first one good', oneLine.replace('"seq":5', '"seq":5,"seq":6'), fromSix, { record: 6 });
kept('no signature', JSON.stringify(without(own, 'signature')), fromSix, {});
kept('no head', '{"format":"kms-activity-head-1"}', fromSix, {});
kept('another format', signed({ format: 'kms-activity-head-2' }), fromSix, {});
kept('cut', oneLine.slice(0, -1), fromSix, {});
kept('not flat', oneLine.replace(/}$/, ',"note":[]}'), fromSix, {});
kept('more than 64 KiB', oneLine + ' '.repeat(65_536), fromSix, {});
kept('white space behind it', `${oneLine} \t\r`, fromSix, dropped5);
kept('white space in front of it', ` ${oneLine}`, fromSix, { record: 1 });
kept('a byte order mark in front of it', `\ufeff${oneLine}`, fromSix, { record: 1 });
kept('on several lines', json(own), fromSix, { record: 1 });
kept(
  'bytes that are no UTF-8 in a field of its own',
  Buffer.from(oneLine.replace(/}$/, ',"note":"\u00ff"}'), 'latin1'),
  fromSix,
  dropped5,
);

writeFileSync(new URL('verdicts.json', dir), `[\n${verdicts.map((each) => JSON.stringify(each)).join(',\n')}\n]\n`);

function lineHash(seq: number): string {
  return (lines[seq - 1] ?? '').slice(9, 52);
}

/** The hash of a text, or the genesis hash if undefined. */
function toHash(of: string | undefined): string {
  const bytes = of === undefined ? Buffer.alloc(32) : createHash('sha256').update(of).digest();
  return bytes.toString('base64url');
}

function without(fields: Fields, name: string): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([each]) => each !== name));
}

function withSeq(fields: Fields, seq: string, now = 5): string {
  return json(fields).replace(`"seq": ${now},`, `"seq": ${seq},`);
}

function changedSignature(change: (bytes: Uint8Array) => void): string {
  const bytes = fromBase64(own.signature) ?? new Uint8Array(64);
  change(bytes);
  return toBase64(bytes);
}

function addOrder(signature: Uint8Array): void {
  signature.set(toLittle(little(signature.subarray(32)) + order), 32);
}

/** The next letter of base64url: as the last letter of a hash it decodes to the same bytes. */
function spare(letter: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return letters.charAt(letters.indexOf(letter) + 1);
}

function bytesOf(line: string, inside: readonly number[]): Uint8Array {
  const at = line.indexOf('payroll');
  return concatBytes(utf8(line.slice(0, at)), Uint8Array.from(inside), utf8(line.slice(at)));
}
