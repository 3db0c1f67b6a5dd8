// Generates test/vectors/assets.json: headers with assets, the public keys, the signed bytes, and the verdict that
// every verifier must reach (docs/formats.md). The output is the same each time.
import { writeFileSync } from 'node:fs';
import { signAsset } from '../src/core/asset-signing.ts';
import { fromBase64Url, toBase64, toBase64Url } from '../src/crypto/bytes.ts';
import { canonicalJson } from '../src/crypto/canonical-json.ts';
import { ed25519PublicKey, ed25519ToSpki } from '../src/crypto/ed25519.ts';
import { encodeHeader } from '../src/crypto/header.ts';
import { sealKeyHash } from '../src/crypto/key-hash.ts';
import { idFromBytes } from '../src/crypto/ulid.ts';
import { tenantKeys } from '../src/seal/tenant-keys.ts';

type Json = Record<string, unknown>;

interface Vector {
  readonly name: string;
  readonly header: string;
  /** Raw text of the asset's file, which is not always valid JSON. */
  readonly asset: string;
  readonly keys: object;
  /** The signed bytes, if the asset verifies. */
  readonly message?: string;
  readonly valid: boolean;
}

let drawn = 0;
const random = (length: number): Uint8Array => Uint8Array.from({ length }, () => (drawn++ * 73 + 5) & 255);
const ulid = (n: number): Uint8Array =>
  Uint8Array.from({ length: 16 }, (_, at) => (at === 15 ? n : (at * 31 + 1) & 255));
const idOf = (n: number): string => idFromBytes('asset', ulid(n));
const ringId = idFromBytes('ring', ulid(100));
const keyId = idFromBytes('key', ulid(101));

const epochs = new Map([1, 2, 700].map((epoch) => [epoch, new Uint8Array(32).fill(epoch & 255)]));
const keysOf = (byEpoch: ReadonlyMap<number, Uint8Array>) => ({
  keys: [...byEpoch].map(([epoch]) => ({
    epoch,
    publicKey: toBase64(ed25519ToSpki(ed25519PublicKey(tenantKeys(byEpoch).key('asset-signing', epoch)))),
    createdAt: '2026-01-02T03:04:05.678Z',
  })),
});
const published = keysOf(epochs);

const vectors: Vector[] = [];

interface Asset {
  readonly id: string;
  readonly version: number;
  readonly parents: readonly string[];
  readonly data: Json;
}

/** An asset as an encrypt under that epoch makes it. */
function made(data: Json, { epoch = 1, version = 1, parents = [] as readonly string[], n = 1 } = {}) {
  const held = new Map([...epochs].filter(([each]) => each <= epoch));
  const keys = tenantKeys(held);
  const sealed = sealKeyHash(keys, ringId, keyId, random);
  const asset: Asset = { id: idOf(n), version, parents, data };
  const signature = signAsset(keys, { ...asset, hash: sealed.hash });
  const header = encodeHeader(keys, { ...sealed, asset: { id: asset.id, version, signature } });
  return { header, asset, hash: sealed.hash };
}

const shown = ({ id, parents, data }: Asset): Json => ({ id, createdAt: '2026-01-02T03:04:05.678Z', data, parents });

function valid(name: string, data: Json, options?: Parameters<typeof made>[1], text?: (asset: Json) => string): void {
  const { header, asset, hash } = made(data, options);
  const { id, version, parents } = asset;
  const message = canonicalJson({ id, version, parents, data, hash });
  const written = (text ?? JSON.stringify)(shown(asset));
  vectors.push({ name, header, asset: written, keys: published, message, valid: true });
}

function invalid(
  name: string,
  change: Partial<Omit<Vector, 'name' | 'valid' | 'message'>>,
  data: Json = { a: 1 },
): void {
  const { header, asset } = made(data);
  vectors.push({ name, header, asset: JSON.stringify(shown(asset)), keys: published, ...change, valid: false });
}

valid('empty data', {});
valid('texts', { file: 'salaries.xlsx', case: 'Grüße, 世界 \u{1f511}', odd: '"\\/\b\f\n\r\t\u0000\u001f\u007f\u2028' });
valid('nothing but literals', { yes: true, no: false, none: null, list: [], object: {}, deep: [[], [{}], [[null]]] });
valid('integers', { n: [0, 1, -1, 10, 100, 2 ** 31, -(2 ** 53) + 1, 2 ** 53 - 1] });
valid('powers of ten', { n: Array.from({ length: 60 }, (_, at) => Number(`1e${at - 30}`)) });
valid('powers of two', { n: Array.from({ length: 120 }, (_, at) => 2 ** (at - 60)) });
valid('numbers of RFC 8785, appendix B', {
  n: [
    5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 9007199254740992, -9007199254740992,
    295147905179352830000, 9.999999999999997e22, 1e23, 1.0000000000000001e23, 999999999999999700000,
    999999999999999900000, 1e21, 9.999999999999997e-7, 0.000001, 333333333.3333332, 333333333.33333325,
    333333333.3333333, 333333333.3333334, 333333333.33333343, -0.0000033333333333333333, 1424953923781206.2,
  ],
});
valid('fractions', { n: [0.1, 0.2, 0.1 + 0.2, 1 / 3, -1.5, 4.35, 0.001, 1e-6, 1e-7, 123456.789, 1.5e300, 2.5e-300] });
valid('names by UTF-16 code units', {
  '\ufb33': 1,
  '\u{1f600}': 2,
  '\u20ac': 3,
  '\r': 4,
  1: 5,
  10: 6,
  2: 7,
  ö: 8,
  '': 9,
  a: 10,
  A: 11,
  '\ue000': 12,
  '\u{10ffff}': 13,
});
valid(
  'names that mean something elsewhere',
  JSON.parse('{"__proto__":{"a":1},"constructor":2,"toString":3,"valueOf":4,"length":5,"id":6}'),
);
valid('texts that look like numbers', { a: 'Infinity', b: ['Infinity'], c: 'NaN', d: '-0', e: ['1e400'] });
valid('nested', { a: Array.from({ length: 30 }).reduce<unknown>((inner) => [inner], 1) });
valid('parents', { a: 1 }, { parents: [idOf(3), idOf(2)] });
valid('a later version', { a: 2 }, { version: 7 });
valid('the largest version', { a: 2 }, { version: 2 ** 32 - 1 });
valid('the key of a later epoch', { a: 3 }, { epoch: 2 });
valid('the key of an epoch of two bytes', { a: 3 }, { epoch: 700 });
valid('another id', { a: 4 }, { n: 255 });
const indented = (asset: Json): string => `\ufeff${JSON.stringify(asset, null, 2)}\r\n`;
valid('written otherwise', { b: 1, a: [1.5, { c: 2 }] }, {}, indented);
valid('numbers written otherwise', { n: [100, 0.5, 0, 1e21, 1] }, {}, (asset) =>
  JSON.stringify(asset).replace('[100,0.5,0,1e+21,1]', '[1e2,0.50,-0,1000000000000000000000,1.00000000000000000001]'),
);
valid('escaped otherwise', { a: 'é/\u{1f511}' }, {}, (asset) =>
  JSON.stringify(asset).replace('é/\u{1f511}', '\\u00E9\\/\\uD83D\\uDD11'),
);
valid('a name twice, the last one good', { a: 1 }, {}, (asset) =>
  JSON.stringify(asset).replace('{"a":1}', '{"a":2,"a":1}'),
);
valid('as decrypt answers it, where there are no parents', { a: 1 }, {}, ({ id, data }) =>
  JSON.stringify({ valid: true, id, message: 'the signature of version 1 verifies', data }),
);

const one = made({ a: 1 });
const oneText = JSON.stringify(shown(one.asset));
const changedAt = (at: number): string => {
  const bytes = fromBase64Url(one.header) ?? new Uint8Array();
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return toBase64Url(bytes);
};
for (const [at, name] of [
  [0, 'format'],
  [1, 'flags'],
  [2, "hash's format"],
  [4, 'epoch'],
  [10, 'nonce'],
  [40, 'hash'],
  [76, "hash's tag"],
  [104, 'id'],
  [108, 'version'],
  [109, 'signature'],
  [141, 'S'],
  [172, 'end of the signature'],
] as const)
  invalid(`the header's ${name} changed`, { header: changedAt(at), asset: oneText });
const oddMacs = fromBase64Url(one.header) ?? new Uint8Array();
oddMacs.fill(0, 77, 89).fill(0, 173);
const oneMessage = canonicalJson({ ...one.asset, hash: one.hash });
vectors.push({
  name: 'other MACs, which the appliance alone can verify',
  header: toBase64Url(oddMacs),
  asset: oneText,
  keys: published,
  message: oneMessage,
  valid: true,
});
invalid('a header without an asset', { header: one.header.slice(0, 119) });
invalid('a header that is cut', { header: one.header.slice(0, -1) });
invalid('a header with more behind it', { header: `${one.header}AAAA` });
invalid('a header in base64', { header: `${'/'.repeat(4)}${one.header.slice(4)}` });
invalid('no header', { header: '' });
invalid('the header of another asset', {
  header: one.header,
  asset: JSON.stringify(shown(made({ a: 1 }, { n: 2 }).asset)),
});
invalid('S + L in the place of S', { header: withOrder(one.header), asset: oneText });
const withAsset = (change: Json): string => JSON.stringify({ ...shown(one.asset), ...change });
for (const [name, change] of Object.entries<Json>({
  'other data': { data: { a: 2 } },
  'more data': { data: { a: 1, b: 1 } },
  'data of another type': { data: { a: '1' } },
  'no data': { data: {} },
  'data that are none': { data: null },
  'data that are a list': { data: [{ a: 1 }] },
  'a parent too many': { parents: [idOf(2)] },
  'parents that are none': { parents: null },
  'parents that are an object': { parents: {} },
  'another id': { id: idOf(2) },
  'an id in upper case': { id: one.asset.id.toUpperCase() },
  'an id that is none': { id: 1 },
}))
  invalid(name, { header: one.header, asset: withAsset(change) });
for (const [name, asset] of Object.entries({
  'a lone surrogate': oneText.replace('"a":1', '"a":"\\ud800"'),
  'a lone surrogate in a name': oneText.replace('"a":1', '"\\ud800":1'),
  'a number beyond all': oneText.replace('"a":1', '"a":1e400'),
  NaN: oneText.replace('"a":1', '"a":NaN'),
  Infinity: oneText.replace('"a":1', '"a":Infinity'),
  'a name twice, the first one good': oneText.replace('"a":1', '"a":1,"a":2'),
  'nested 70 deep': oneText.replace('"a":1', `"a":${'['.repeat(70)}${']'.repeat(70)}`),
  'nested 5,000 deep': oneText.replace('"a":1', `"a":${'['.repeat(5000)}${']'.repeat(5000)}`),
  'an asset that is cut': oneText.slice(0, -2),
  'a list of the asset': `[${oneText}]`,
  'null in the place of the asset': 'null',
  'no asset': '',
}))
  invalid(name, { header: one.header, asset });
const [first, second, third] = published.keys;
for (const [name, keys] of Object.entries<object>({
  'no key of that epoch': { keys: [second, third] },
  'the key of another epoch': { keys: [{ ...second, epoch: 1 }] },
  'the key of another tenant': keysOf(new Map([[1, new Uint8Array(32).fill(77)]])),
  'a key of X25519': { keys: [{ ...first, publicKey: first?.publicKey.replace('MCowBQYDK2Vw', 'MCowBQYDK2Vu') }] },
  'a key that is the bare 32 bytes': { keys: [{ ...first, publicKey: toBase64(new Uint8Array(32).fill(5)) }] },
  'a key of small order': {
    keys: [{ ...first, publicKey: toBase64(ed25519ToSpki(Uint8Array.of(1, ...new Uint8Array(31)))) }],
  },
  'an empty key': { keys: [{ ...first, publicKey: '' }] },
  'no keys': { keys: [] },
  'keys that are none': {},
}))
  invalid(name, { header: one.header, asset: oneText, keys });

writeFileSync(
  new URL('../test/vectors/assets.json', import.meta.url),
  `[\n${vectors.map((each) => JSON.stringify(each)).join(',\n')}\n]\n`,
);

function withOrder(header: string): string {
  const bytes = fromBase64Url(header) ?? new Uint8Array();
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const s = BigInt(`0x${bytes.slice(141, 173).reverse().toHex()}`) + order;
  bytes.set(Uint8Array.fromHex(s.toString(16).padStart(64, '0')).reverse(), 141);
  return toBase64Url(bytes);
}
