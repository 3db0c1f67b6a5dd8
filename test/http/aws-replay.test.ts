// Requests that real clients of AWS KMS sent, as recorded: their signatures are good, and what they asked is answered
// in the form that they took. Ids, blobs and signatures of the recording are exchanged for those that came here.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { accountOf } from '../../src/core/aws-names.ts';
import { utf8 } from '../../src/crypto/bytes.ts';
import { hmacSha256 } from '../../src/crypto/fast-hash.ts';
import { isSigned, readAuthorization, signingKey, whyUnsigned } from '../../src/dialects/aws/sigv4.ts';
import { testAppliance } from '../support/appliance.ts';
import { type AccessKey, accessKey, call } from '../support/aws-client.ts';

interface Exchange {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly status: number;
  readonly answer: string;
}

const recordings: Readonly<Record<string, readonly Exchange[]>> = JSON.parse(
  readFileSync(new URL('../vectors/aws-kms-clients.json', import.meta.url), 'utf8'),
);

/** Secrets of the access keys in the recordings, which are of no use elsewhere. */
const secrets: Readonly<Record<string, string>> = {
  AKIAPROTOTYPEADMIN01: 'prototypeAdminSecret/+abcdefghijklmnopqr',
  AKIAPROTOTYPEENCRY01: 'prototypeEncryptSecret+/abcdefghijklmnop',
};

function typeIn(answer: string): string | undefined {
  return answer.startsWith('{') ? JSON.parse(answer).__type : undefined;
}

for (const [client, exchanges] of Object.entries(recordings)) {
  test(`${client}: its signatures are good, and no longer with another byte`, () => {
    let good = 0;
    for (const { headers, body, answer } of exchanges) {
      const request = { method: 'POST', path: '/', search: '', headers };
      const read = readAuthorization(request);
      assert.ok(typeof read === 'object', headers.authorization ?? 'no authorization');
      const secret = secrets[read.accessKeyId];
      if (secret === undefined) {
        // Temporary ones' secrets were not recorded.
        const isTemporary = headers['x-amz-security-token'] !== undefined;
        assert.ok(isTemporary || typeIn(answer) === 'UnrecognizedClientException', answer);
        continue;
      }
      const [, year, month, day, hour, minute, second] =
        /^(....)(..)(..)T(..)(..)(..)Z$/.exec(headers['x-amz-date'] ?? '') ?? [];
      const now = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
      const scope = { region: read.region, service: 'kms' };
      assert.equal(whyUnsigned(request, read, scope, now), undefined);
      const isGood = isSigned(request, read, hmacSha256(signingKey(secret, read)), utf8(body));
      // One had a clock that was wrong.
      const isWrong = typeIn(answer) === 'InvalidSignatureException' && !answer.includes('Signature expired');
      assert.equal(isGood, !isWrong, answer);
      if (isGood) good++;
      assert.equal(isSigned(request, read, hmacSha256(signingKey(secret, read)), utf8(`${body} `)), false);
    }
    assert.ok(good > 0);
  });
}

/** Paths of all members of a value, of lists those of the first item. */
function pathsOf(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : pathsOf(value[0], `${at}[]`);
  if (typeof value !== 'object' || value === null) return [at];
  return Object.entries(value).flatMap(([name, each]) => pathsOf(each, at === '' ? name : `${at}.${name}`));
}

/** Notes which text of the recording is which one here. */
function pair(recorded: unknown, ours: unknown, known: Map<string, string>): void {
  if (typeof recorded === 'string' && typeof ours === 'string') {
    if (recorded !== ours && recorded.length > 8) known.set(recorded, ours);
    return;
  }
  if (typeof recorded !== 'object' || recorded === null || typeof ours !== 'object' || ours === null) return;
  for (const [name, value] of Object.entries(recorded)) pair(value, Reflect.get(ours, name), known);
}

function exchanged(value: unknown, known: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return known.get(value) ?? value;
  if (Array.isArray(value)) return value.map((each) => exchanged(each, known));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, exchanged(each, known)]));
}

/** The same with ARNs of the account here, where the client put them together itself. */
function inAccount(value: unknown, account: string): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll(':000000000000:', `:${account}:`));
}

/** Fields of recorded answers that there is nothing here to fill with. */
const lacking = new Set([
  // Which material a ciphertext is under is not said.
  'KeyMaterialId',
  'SourceKeyMaterialId',
  'DestinationKeyMaterialId',
  'KeyMaterialState',
  // There were more keys when these were recorded.
  'NextMarker',
]);

/** The ids, blobs and signatures in a value. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return /^(?!SYMM|RSA|ECDSA|arn:.*alias).{30,}$/.test(value) ? [value] : [];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

/** Requests that are answered otherwise here, each for a reason. */
function isOtherwise(operation: string, body: string): boolean {
  // There are no keys of ML-KEM.
  if (/ML_KEM/.test(body) || operation === 'Encapsulate' || operation === 'Decapsulate') return true;
  if (Object.hasOwn(JSON.parse(body), 'Marker')) return true;
  // The material was wrapped to a key of the recording; the tests of import wrap their own.
  return operation === 'ImportKeyMaterial';
}

test('what real clients asked is answered as they took it', async () => {
  let replayed = 0;
  for (const [client, exchanges] of Object.entries(recordings)) {
    const a = await testAppliance();
    const admin = (await accessKey(a)).key;
    const encryptor = (await accessKey(a, 'key.*.encrypt', 'key.*.read')).key;
    const account = accountOf(a.tenants[0]?.handle.tenant.id ?? '');
    const known = new Map<string, string>();
    /** Keys of which nothing is replayed any more, since one request was left out. */
    const left = new Set<string>();
    for (const { headers, body, status, answer } of exchanges) {
      const operation = headers['x-amz-target']?.slice('TrentService.'.length) ?? '';
      const type = typeIn(answer);
      if (type === 'InvalidSignatureException' || type === 'UnrecognizedClientException') continue;
      const given: unknown = inAccount(exchanged(JSON.parse(body), known), account);
      const texts = [...textsOf(JSON.parse(body)), ...textsOf(answer === '' ? {} : JSON.parse(answer))];
      if (isOtherwise(operation, body) || textsOf(JSON.parse(body)).some((text) => left.has(text))) {
        for (const text of texts) left.add(text);
        continue;
      }
      const isEncryptor = headers.authorization?.includes('AKIAPROTOTYPEENCRY01');
      const key: AccessKey = isEncryptor ? encryptor : admin;
      const ours = await call(a, key, operation, given as object);
      const where = `${client}: ${operation} ${JSON.stringify(given)}\n${answer}\n${JSON.stringify(ours)}`;
      if (type !== undefined) assert.equal(ours.__type, type, where);
      assert.equal(ours.status, status, where);
      replayed++;
      const { status: _, ...told } = ours;
      const wanted: unknown = answer === '' ? {} : JSON.parse(answer);
      pair(wanted, told, known);
      const there = new Set(pathsOf(told));
      const missing = pathsOf(wanted).filter((path) => !there.has(path) && !lacking.has(path.split('.').at(-1) ?? ''));
      if (type === undefined) assert.deepEqual(missing, [], where);
    }
  }
  assert.ok(replayed > 200, `${replayed}`);
});
