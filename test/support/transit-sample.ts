// Managed keys of all types with several versions and a deleted one, their ciphertexts and signatures, and the check
// that all of them still open.
import assert from 'node:assert/strict';

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type AnyJson = any;

/** Types that the appliance always had. */
const types = ['aes256-gcm', 'chacha20-poly1305', 'ed25519', 'ecdsa-p256'] as const;
const isCipher = (type: string): boolean => type === 'aes256-gcm' || type === 'chacha20-poly1305';

/** Sends a request with all rights. */
type Ask = (
  method: string,
  path: string,
  body?: object,
) => Promise<{ readonly status: number; readonly body: AnyJson }>;

interface Held {
  readonly ring: string;
  /** The body of the request that opens or verifies it. */
  readonly body: AnyJson;
  readonly answer: AnyJson;
}

export interface TransitSample {
  readonly held: readonly Held[];
  /** Id of the deleted ring. */
  readonly deletedId: string;
  readonly ofDeleted: Held;
}

const versions = 3;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

async function ok(asked: ReturnType<Ask>): Promise<AnyJson> {
  const { status, body } = await asked;
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

export async function transitSample(ask: Ask): Promise<TransitSample> {
  const held: Held[] = [];
  const kinds = types.flatMap((type) =>
    (isCipher(type) ? [false, true] : [false]).map((derived) => ({ type, derived })),
  );
  for (const { type, derived } of kinds) {
    const name = derived ? `${type}-derived` : type;
    await ok(ask('POST', '/managed-keys', { name, type, derived }));
    for (let version = 1; version <= versions; version++) {
      if (version > 1) await ok(ask('POST', `/managed-keys/${name}/rotate`, {}));
      held.push(isCipher(type) ? await message(ask, name, version, derived) : await signature(ask, name, version));
    }
  }
  await ok(ask('POST', '/managed-keys', { name: 'gone' }));
  const ofDeleted = await message(ask, 'gone', 1, false);
  await ok(ask('PUT', '/managed-keys/gone/config', { deletionAllowed: true }));
  const { id } = await ok(ask('DELETE', '/managed-keys/gone', { used: true }));
  return { held, deletedId: id, ofDeleted };
}

async function message(ask: Ask, ring: string, version: number, derived: boolean): Promise<Held> {
  const bound = { associatedData: base64('header'), ...(derived && { context: base64('context') }) };
  const plaintext = base64(`${ring} ${version}`);
  const { items } = await ok(ask('POST', `/managed-keys/${ring}/encrypt`, { items: [{ plaintext, ...bound }] }));
  assert.equal(items[0].keyVersion, version);
  return { ring, body: { items: [{ ciphertext: items[0].ciphertext, ...bound }] }, answer: { items: [{ plaintext }] } };
}

async function signature(ask: Ask, ring: string, version: number): Promise<Held> {
  const input = base64(`${ring} ${version}`);
  const { signature, keyVersion } = await ok(ask('POST', `/managed-keys/${ring}/sign`, { input }));
  assert.equal(keyVersion, version);
  return { ring, body: { input, signature }, answer: { valid: true } };
}

/** Checks that everything opens, that altered values don't, and that each ring continues with its newest version. */
export async function opensAll(ask: Ask, { held, deletedId, ofDeleted }: TransitSample): Promise<void> {
  for (const each of held) await opens(ask, each);
  for (const ring of new Set(held.map(({ ring }) => ring))) {
    const shown = (await ok(ask('GET', `/managed-keys/${ring}`))).key;
    assert.deepEqual([shown.custody, shown.latestVersion, shown.versions.length], ['server', versions, versions]);
    const derived = ring.endsWith('-derived');
    await opens(
      ask,
      shown.versions[0].publicKey ? await signature(ask, ring, versions) : await message(ask, ring, versions, derived),
    );
  }
  assert.equal((await ask('POST', '/managed-keys/gone/decrypt', ofDeleted.body)).status, 400);
  await ok(ask('POST', `/managed-keys/${deletedId}/restore`, {}));
  await opens(ask, ofDeleted);
  await ok(ask('DELETE', '/managed-keys/gone', { used: true }));
}

async function opens(ask: Ask, { ring, body, answer }: Held): Promise<void> {
  const what = body.items ? 'decrypt' : 'verify';
  assert.deepEqual(await ok(ask('POST', `/managed-keys/${ring}/${what}`, body)), answer);
  const altered = body.items
    ? { items: [{ ...body.items[0], associatedData: base64('other') }] }
    : { ...body, input: base64('other') };
  const refused = await ok(ask('POST', `/managed-keys/${ring}/${what}`, altered));
  if (body.items) assert.match(refused.items[0].error, /authentication failed/);
  else assert.equal(refused.valid, false);
}
