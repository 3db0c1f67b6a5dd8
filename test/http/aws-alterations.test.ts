// None of 2,000 altered signatures and headers of requests to AWS KMS passes, and no altered ciphertext or encryption
// context opens. What is altered is chosen by a seed, so that a failure comes again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hmacSha256 } from '../../src/crypto/fast-hash.ts';
import { contextBytes } from '../../src/dialects/aws/encryption-context.ts';
import { isSigned, readAuthorization, signingKey, whyUnsigned } from '../../src/dialects/aws/sigv4.ts';
import { around, base64, call, done, json, post, type Sent, signed } from '../support/aws-client.ts';
import { prng } from '../support/prng.ts';

const seed = 20_261_129;

type Random = (below: number) => number;

/** One character of a text replaced by another that is not the same for a reader of headers. */
function altered(text: string, random: Random, from = 'abcdefghijklmnopqrstuvwxyz0123456789/;=,-.AZ'): string {
  const at = random(text.length);
  const other = from.replaceAll(text[at] ?? '', '');
  return text.slice(0, at) + other[random(other.length)] + text.slice(at + 1);
}

/** An alteration of a request; each gives another one. */
const alterations: readonly ((sent: Sent, random: Random) => Sent)[] = [
  ({ headers, body }, random) => {
    const names = Object.keys(headers);
    const name = names[random(names.length)] ?? '';
    return { headers: { ...headers, [name]: altered(headers[name] ?? '', random) }, body };
  },
  ({ headers, body }, random) => {
    const signature = headers.authorization?.slice(-64) ?? '';
    const authorization = headers.authorization?.slice(0, -64) + altered(signature, random, '0123456789abcdef');
    return { headers: { ...headers, authorization }, body };
  },
  ({ headers, body }, random) => ({ headers, body: altered(body, random) }),
  ({ headers, body }, random) => ({ headers, body: body.slice(0, random(body.length)) }),
  ({ headers, body }, random) => ({ headers: { ...headers, [`x-amz-${random(1e6)}`]: 'x' }, body }),
  ({ headers, body }, random) => {
    const needed = ['host', 'x-amz-date', 'x-amz-target', 'content-type', 'authorization'];
    const gone = needed[random(needed.length)];
    return { headers: Object.fromEntries(Object.entries(headers).filter(([name]) => name !== gone)), body };
  },
  ({ headers, body }, random) => {
    const operations = ['Encrypt', 'Decrypt', 'CreateKey', 'ScheduleKeyDeletion', 'GenerateDataKey'];
    const target = `TrentService.${operations[random(operations.length)]}`;
    return { headers: { ...headers, 'x-amz-target': target }, body };
  },
  ({ headers, body }, random) => {
    const list = headers.authorization?.match(/SignedHeaders=([^,]+)/)?.[1]?.split(';') ?? [];
    const left = list.filter((_, at) => at !== random(list.length)).join(';');
    const authorization = headers.authorization?.replace(/SignedHeaders=[^,]+/, `SignedHeaders=${left}x`) ?? '';
    return { headers: { ...headers, authorization }, body };
  },
];

test('of 2,000 altered requests none is taken for signed', async () => {
  const { a, key } = await around();
  const random = prng(seed).next;
  const below: Random = (n) => Math.floor(random() * n);
  const body = JSON.stringify({ Limit: 7, Marker: 'abc' });
  const good = signed(a, key, { 'content-type': json, 'x-amz-target': 'TrentService.ListKeys' }, body);
  const isTaken = ({ headers, body: text }: Sent): boolean => {
    const request = { method: 'POST', path: '/', search: '', headers };
    const read = readAuthorization(request);
    if (typeof read === 'string' || read.accessKeyId !== key.id) return false;
    if (whyUnsigned(request, read, { region: 'us-east-1', service: 'kms' }, a.world.now()) !== undefined) return false;
    return isSigned(request, read, hmacSha256(signingKey(key.secret, read)), Buffer.from(text));
  };
  assert.equal(isTaken(good), true);
  for (let n = 0; n < 2000; n++) {
    const sent = alterations[n % alterations.length]?.(good, below) ?? good;
    assert.notDeepEqual(sent, good);
    assert.equal(isTaken(sent), false, `${n}: ${JSON.stringify(sent)}`);
  }
});

test('altered requests are refused over the listener too, each without an effect', async () => {
  const { a, key } = await around();
  const random = prng(seed + 1).next;
  const below: Random = (n) => Math.floor(random() * n);
  const good = signed(
    a,
    key,
    { 'content-type': json, 'x-amz-target': 'TrentService.CreateKey' },
    '{"Description":"d"}',
  );
  for (const alter of alterations) {
    for (let n = 0; n < 4; n++) {
      const { status, body } = await post(a, alter(good, below));
      assert.ok(status === 400, JSON.stringify(body));
      assert.match(body.__type, /^(?:Invalid|Incomplete)Signature|^Missing|^Unrecognized|^Throttling|^UnknownOp/);
    }
  }
  // After so many failures the address waits.
  a.advance(24 * 60 * 60 * 1000);
  assert.deepEqual((await done(a, key, 'ListKeys')).Keys, []);
});

test('a call that an SDK makes three times counts as one failure, and is one record', async () => {
  const { a, key } = await around();
  const wrong = { ...key, secret: 'x'.repeat(40) };
  const before = (await a.activity()).length;
  for (let n = 0; n < 3; n++) {
    assert.equal((await call(a, wrong, 'ListKeys')).__type, 'InvalidSignatureException');
    a.advance(1000);
  }
  assert.equal((await a.activity()).length, before + 1);
  const [record] = await a.activity();
  assert.deepEqual([record?.action, record?.validAction, record?.props.refusedBy], ['none', false, 'signature']);
});

test('no altered ciphertext opens, whichever byte it is', async () => {
  const { a, key } = await around();
  const { KeyMetadata: made } = await done(a, key, 'CreateKey');
  const EncryptionContext = { app: 'pay', path: '/a' };
  const input = { KeyId: made.KeyId, Plaintext: base64('hello'), EncryptionContext };
  const { CiphertextBlob } = await done(a, key, 'Encrypt', input);
  const blob = Buffer.from(CiphertextBlob, 'base64');
  const random = prng(seed + 2).next;
  for (let at = 0; at < blob.length; at++) {
    const other = Buffer.from(blob);
    other[at] = (other[at] ?? 0) ^ (1 << Math.floor(random() * 8));
    const got = await call(a, key, 'Decrypt', { CiphertextBlob: base64(other), EncryptionContext });
    assert.equal(got.__type, 'InvalidCiphertextException', `${at}`);
  }
  for (const cut of [blob.subarray(0, -1), blob.subarray(1), Buffer.concat([blob, Buffer.alloc(1)])]) {
    const got = await call(a, key, 'Decrypt', { CiphertextBlob: base64(cut), EncryptionContext });
    assert.equal(got.__type, 'InvalidCiphertextException');
  }
  // The blob does not show which key it is of.
  assert.equal(blob.includes(Buffer.from(made.KeyId.replaceAll('-', ''), 'hex')), false);
  assert.equal((await done(a, key, 'Decrypt', { CiphertextBlob, EncryptionContext })).Plaintext, base64('hello'));
});

test('one context has one encoding, and no two share one', () => {
  const random = prng(seed + 3).next;
  const texts = ['', 'a', 'b', 'ab', 'A', '\u{1f600}', '\uffee', 'é', 'e\u0301', '\u0000', '1', '10', '2'];
  const text = () => texts[Math.floor(random() * texts.length)] ?? '';
  const seen = new Map<string, string>();
  for (let n = 0; n < 2000; n++) {
    const pairs = Array.from({ length: Math.floor(random() * 4) }, () => [text(), text()] as const);
    const context = Object.fromEntries(pairs);
    const bytes = Buffer.from(contextBytes(context)).toString('hex');
    const meaning = JSON.stringify(
      Object.entries(context).sort(([x], [y]) => Buffer.compare(Buffer.from(x), Buffer.from(y))),
    );
    assert.equal(seen.get(bytes) ?? meaning, meaning);
    seen.set(bytes, meaning);
    const turned = Object.fromEntries(Object.entries(context).reverse());
    assert.equal(Buffer.from(contextBytes(turned)).toString('hex'), bytes);
  }
  assert.equal(new Set(seen.values()).size, seen.size);
  // Sorted by the bytes of UTF-8, not by units of UTF-16.
  const hex = Buffer.from(contextBytes({ '\u{1f600}': 'x', '\uffee': 'y' })).toString('hex');
  assert.equal(hex, '0000000200000003efbfae000000017900000004f09f9880000000' + '0178');
  assert.throws(() => contextBytes({ a: '\ud800' }), /well-formed/);
  assert.throws(() => contextBytes({ a: 'x'.repeat(8192) }), /8192/);
});
