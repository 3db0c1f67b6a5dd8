// Tang's formats: points, advertisements and the result of an exchange, compared with Node's own P-521, and a sealed
// pair that must open for ever.
import assert from 'node:assert/strict';
import { createECDH, createHash, createPublicKey, verify } from 'node:crypto';
import { test } from 'node:test';
import { p521 } from '@noble/curves/nist.js';
import { concatBytes, fromBase64Url, toBase64Url, utf8 } from '../../src/crypto/bytes.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import {
  advertisement,
  exchanged,
  newTangPair,
  openTangPair,
  sealTangPair,
  tangPoints,
  tangThumbprints,
} from '../../src/crypto/tang.ts';

// RFC 7515, A.4.
const rfc = {
  x: 'AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk',
  y: 'ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2',
  d: 'AY5pb7A0UFiB3RELSD64fTLOSV_jazdF7fLYyuTw8lOfRhWg6Y6rUrPAxerEzgdRhajnu0ferB0d53vM9mE15j2C',
};

const bytesOf = (text: string): Uint8Array => fromBase64Url(text) ?? assert.fail(text);

test('the points of a pair are those of its secrets', () => {
  const secret = bytesOf(rfc.d);
  const { signing, exchange } = tangPoints(concatBytes(secret, secret));
  assert.deepEqual(signing, { x: rfc.x, y: rfc.y });
  assert.deepEqual(exchange, signing);
});

test('thumbprints are hashes of the members that RFC 7638 names, in its order', () => {
  const { s256, s1 } = tangThumbprints(rfc);
  const text = `{"crv":"P-521","kty":"EC","x":"${rfc.x}","y":"${rfc.y}"}`;
  assert.equal(s256, createHash('sha256').update(text).digest('base64url'));
  assert.equal(s1, createHash('sha1').update(text).digest('base64url'));
});

test('an advertisement says both keys and what they are for, and Node verifies each signature of it', () => {
  const [pair, older] = [newTangPair(systemRandom), newTangPair(systemRandom)];
  const points = tangPoints(pair);
  for (const signers of [[pair], [pair, older]]) {
    const jws = JSON.parse(advertisement(points, signers));
    const { keys } = JSON.parse(Buffer.from(jws.payload, 'base64url').toString());
    assert.deepEqual(keys, [
      { alg: 'ES512', crv: 'P-521', key_ops: ['verify'], kty: 'EC', ...points.signing },
      { alg: 'ECMR', crv: 'P-521', key_ops: ['deriveKey'], kty: 'EC', ...points.exchange },
    ]);
    const signatures = signers.length === 1 ? [jws] : jws.signatures;
    assert.equal(signatures.length, signers.length);
    for (const [n, signer] of signers.entries()) {
      const { protected: header, signature } = signatures[n];
      assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: 'ES512', cty: 'jwk-set+json' });
      const key = createPublicKey({
        key: { kty: 'EC', crv: 'P-521', ...tangPoints(signer).signing },
        format: 'jwk',
      });
      const given = { key, dsaEncoding: 'ieee-p1363' } as const;
      assert.ok(verify('sha512', utf8(`${header}.${jws.payload}`), given, bytesOf(signature)));
    }
    assert.ok(!JSON.stringify(jws).includes('"d"'));
  }
});

test('what comes of an exchange is what ECDH has, with the sign of the point', () => {
  const pair = newTangPair(systemRandom);
  const server = createECDH('secp521r1');
  server.setPrivateKey(pair.subarray(66));
  for (let n = 0; n < 8; n++) {
    const client = createECDH('secp521r1');
    client.generateKeys();
    const mine = client.getPublicKey();
    const answer = JSON.parse(exchanged(pair, ...coordinates(mine)) ?? assert.fail());
    assert.deepEqual(
      { ...answer, x: undefined, y: undefined },
      { alg: 'ECMR', crv: 'P-521', key_ops: ['deriveKey'], kty: 'EC', x: undefined, y: undefined },
    );
    assert.deepEqual(bytesOf(answer.x), new Uint8Array(server.computeSecret(mine)));
    // The same point from the other secret: Node confirms its x, and that the answer is on the curve.
    assert.deepEqual(bytesOf(answer.x), new Uint8Array(client.computeSecret(server.getPublicKey())));
    createPublicKey({ key: { kty: 'EC', crv: 'P-521', x: answer.x, y: answer.y }, format: 'jwk' });
    const [x, y] = coordinates(mine);
    const negated = JSON.parse(exchanged(pair, x, negative(y)) ?? assert.fail());
    assert.deepEqual([negated.x, negated.y], [answer.x, negative(answer.y)]);
  }
});

test('a scalar of one leaves the point as it is, and that of the order less one turns it', () => {
  const scalar = (n: bigint): Uint8Array => Uint8Array.fromHex(n.toString(16).padStart(132, '0'));
  const one = concatBytes(scalar(1n), scalar(1n));
  const last = concatBytes(scalar(1n), scalar(p521.Point.Fn.ORDER - 1n));
  const at = (pair: Uint8Array) => JSON.parse(exchanged(pair, rfc.x, rfc.y) ?? assert.fail());
  assert.deepEqual([at(one).x, at(one).y], [rfc.x, rfc.y]);
  assert.deepEqual([at(last).x, at(last).y], [rfc.x, negative(rfc.y)]);
});

test('what is no point of the curve comes to nothing', () => {
  const pair = newTangPair(systemRandom);
  const zero = toBase64Url(new Uint8Array(66));
  const full = toBase64Url(new Uint8Array(66).fill(255));
  const bytes = bytesOf(rfc.x);
  const longer = toBase64Url(concatBytes(Uint8Array.of(0), bytes));
  const padded = Buffer.from(bytes).toString('base64');
  for (const [x, y] of [
    [rfc.y, rfc.x],
    [zero, zero],
    [rfc.x, zero],
    [zero, rfc.y],
    [full, full],
    [rfc.x, full],
    [prime(rfc.x), rfc.y],
    [toBase64Url(bytes.subarray(1)), rfc.y],
    [longer, rfc.y],
    [padded, rfc.y],
    [`${rfc.x} `, rfc.y],
    ['', ''],
    [rfc.x, ''],
    ['AQAB', 'AQAB'],
  ] as const) {
    assert.equal(exchanged(pair, x, y), undefined, `${x} ${y}`);
  }
});

/** The same number plus the field's prime, in as many bytes. */
function prime(x: string): string {
  const sum = BigInt(`0x${Buffer.from(x, 'base64url').toString('hex')}`) + (1n << 521n) - 1n;
  return Buffer.from(sum.toString(16).padStart(132, '0'), 'hex').toString('base64url');
}

function negative(y: string): string {
  const field = (1n << 521n) - 1n;
  const turned = field - BigInt(`0x${Buffer.from(y, 'base64url').toString('hex')}`);
  return Buffer.from(turned.toString(16).padStart(132, '0'), 'hex').toString('base64url');
}

function coordinates(point: Uint8Array): [string, string] {
  return [toBase64Url(point.subarray(1, 67)), toBase64Url(point.subarray(67))];
}

const sealing = Uint8Array.from({ length: 32 }, (_, at) => at);

test('a sealed pair opens with its key and thumbprint alone, and with no bit of it changed', () => {
  const pair = newTangPair(systemRandom);
  const sealed = sealTangPair(sealing, 'a', pair, systemRandom);
  assert.deepEqual(openTangPair(sealing, 'a', sealed), pair);
  assert.equal(openTangPair(sealing, 'b', sealed), undefined);
  assert.equal(openTangPair(new Uint8Array(32), 'a', sealed), undefined);
  const bytes = Uint8Array.fromBase64(sealed);
  for (const at of [0, 1, 24, 25, 100, bytes.length - 1]) {
    const changed = bytes.slice();
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.equal(openTangPair(sealing, 'a', changed.toBase64()), undefined, String(at));
  }
  for (const text of ['', 'x', sealed.slice(0, -4), `${sealed}AAAA`]) {
    assert.equal(openTangPair(sealing, 'a', text), undefined);
  }
});

test('a pair that was sealed before opens', () => {
  const pair = concatBytes(bytesOf(rfc.d), bytesOf(rfc.d));
  const nonce = (length: number): Uint8Array => Uint8Array.from({ length }, (_, at) => 255 - at);
  const { s256 } = tangThumbprints(rfc);
  const kept =
    'Af/+/fz7+vn49/b19PPy8fDv7u3s6+rp6K1+NR0L2rY1BOqIFMOiM11M7BzGQo51EkD7Pvq/JoPHjStoOiGht+nLhexp6qPJn5kgsGSoeDYtfdwJc9UZ4IVchgNoSXbU1YQ/m2Lo1iJh2kk/UAoGYkp2HnGfBfdlBWSua3aVFdVW+fCT8icWSU2N2J5OcAjJ0e1JOkDGVcK7Li4E2HiyVYkWRdad9CzFbe/mvto=';
  assert.equal(sealTangPair(sealing, s256, pair, nonce), kept);
  assert.deepEqual(openTangPair(sealing, s256, kept), pair);
});

test('no thumbprint begins like an option', () => {
  const next = (n: number) => (length: number) => {
    const bytes = new Uint8Array(createHash('shake256', { outputLength: length }).update(`${n} ${turn++}`).digest());
    return bytes;
  };
  let turn = 0;
  for (let n = 0; n < 100; n++) {
    assert.ok(!tangThumbprints(tangPoints(newTangPair(next(n))).signing).s256.startsWith('-'));
  }
});
