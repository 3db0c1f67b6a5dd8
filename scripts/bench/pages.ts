// The time that the largest page of each list takes over HTTP, from the request to the last byte, and how long a
// neighbour who encrypts sequentially, from another process, waits meanwhile. Both run on the core that the server does
// not use, and discard what they read.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toBase64, toBase64Url } from '../../src/crypto/bytes.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { systemWorld } from '../../src/platform/environment.ts';
import type { Tables, Transaction } from '../../src/store/port.ts';
import { history } from './activity-records.ts';
import { type BenchAppliance, makeAppliance, openTenant, serve, timed } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { Client, load, type Measured } from './load.ts';
import { stayOn } from './process.ts';

const size = 10_000;

export async function measurePages(rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-'));
  const appliance = makeAppliance(join(home, 'data'));
  const { keyringName, keyringId } = await fill(appliance);
  const served = await serve(0, appliance);
  const goAnywhere = stayOn(1);
  const lists: readonly { name: string; path: string; body?: object }[] = [
    { name: 'keyrings', path: '/ks/keyrings' },
    { name: 'keys of a keyring', path: `/ks/keyrings/${keyringName}/keys` },
    { name: 'users', path: '/auth/users' },
    { name: 'accounts', path: '/auth/accounts' },
    { name: 'API keys', path: '/auth/apikey' },
    { name: 'API keys of an account', path: `/auth/accounts/${appliance.accountId}/apikeys` },
    { name: 'API keys of a keyring', path: `/auth/search/keyring/${keyringName}/apikey` },
    { name: 'assets', path: '/assets/search', body: {} },
    { name: 'assets of a keyring', path: '/assets/search', body: { keyringId } },
    { name: 'assets by their data', path: '/assets/search', body: { data: { kind: 'report' } } },
    { name: 'activity', path: '/auth/search/activity', body: {} },
    { name: 'activity, granted', path: '/auth/search/activity', body: { valid: true } },
  ];
  console.log(`\nPages of ${size}, median of ${rounds} after the first`);
  const neighbour = async (run: () => Promise<void>): Promise<Measured> => {
    const body = JSON.stringify({ ringname: keyringName });
    const asked = { url: `${served.url}/ks/encrypt`, headers: appliance.headers, body, clients: 1, seconds: 3 };
    const state = { isOver: false };
    const measured = load(1, asked).finally(() => {
      state.isOver = true;
    });
    while (!state.isOver) await run();
    return measured;
  };
  const nobody = () => new Promise<void>((resolve) => setTimeout(resolve, 100));
  // Lets the work that a start defers by a few seconds finish first.
  await neighbour(nobody);
  const alone = await neighbour(nobody);
  const waits = ({ p50, p99, longest }: Measured) => [p50, p99, longest].map(short);
  console.log(`The neighbour alone: p50, p99 and longest ${waits(alone).join(', ')} ms`);
  row('', 'kB', 'first ms', 'ms', 'its p50', 'p99', 'longest');
  let slowest = 0;
  let longest = 0;
  for (const { name, path, body } of lists) {
    const wanted = `${path}?limit=${size}`;
    let answer = '';
    const first = await timed(async () => {
      answer = await served.ask(wanted, body);
    });
    const { count, hasMore } = JSON.parse(answer).pagination;
    if (count !== size || !hasMore) throw new Error(`${path}: expected ${size} of more items, got ${count}`);
    const text = body && JSON.stringify(body);
    const client = new Client({ url: served.url + wanted, headers: appliance.headers, body: text });
    const ask = () => client.ask();
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) times.push(await timed(ask));
    const waited = await neighbour(ask);
    client.end();
    row(name, Math.round(answer.length / 1000), short(first), short(median(times)), ...waits(waited));
    slowest = Math.max(slowest, median(times));
    longest = Math.max(longest, waited.longest);
  }
  goal('the slowest page', slowest, 60, 'at most', ' ms');
  goal('what a neighbour waits meanwhile', longest, 10, 'at most', ' ms');
  await served.stop();
  goAnywhere();
  rmSync(home, { recursive: true });
}

/**
 * Adds more than a page of everything. The first keyring has all keys, is named by all API keys, and has all assets.
 */
async function fill(appliance: BenchAppliance): Promise<{ keyringName: string; keyringId: string }> {
  const store = await openTenant(appliance);
  const world = systemWorld();
  const keyring = { keyringName: 'ring-0', keyringId: world.newId('ring') };
  const past = history({ id: '', keyids: [] });
  for (let from = 0; from < size + 500; from += 500) {
    await store.transaction((tx) => {
      for (let at = from; at < from + 500; at++) {
        const ringId = at === 0 ? keyring.keyringId : world.newId('ring');
        add(tx, { at, now: world.now(), newId: world.newId, ringId, first: keyring, appliance });
        tx.record(past.record(at));
      }
    });
  }
  await store.close();
  return keyring;
}

interface Addition {
  readonly at: number;
  readonly now: number;
  newId(prefix: string): string;
  readonly ringId: string;
  readonly first: { readonly keyringName: string; readonly keyringId: string };
  readonly appliance: BenchAppliance;
}

/** Adds one row of each kind, of realistic size; their keys are never opened. */
function add(tx: Transaction<Tables>, addition: Addition): void {
  const { at, now, newId, ringId, first, appliance } = addition;
  addRing(tx, { ...addition, id: ringId, keysTo: first.keyringId });
  const userId = addUser(tx, addition);
  addApiKey(tx, { ...addition, userId, accountId: appliance.accountId, keyringName: first.keyringName });
  tx.accounts.insert({
    id: newId('acct'),
    uid: `account-${at}`,
    notes: 'made by the bench',
    props: {},
    createdAt: now,
    updatedAt: now,
  });
  tx.assets.insert({
    id: newId('asset'),
    ringId: first.keyringId,
    data: { kind: 'report', file: `report-${at}.pdf`, owner: { name: 'Ada', desk: at } },
    parents: [],
    apikeyId: 'apik_bench',
    accountId: appliance.accountId,
    createdAt: now,
  });
}

type Numbered = Pick<Addition, 'at' | 'now' | 'newId'>;

/** Adds a ring, and a key that belongs to the ring `keysTo`. */
export function addRing(
  tx: Transaction<Tables>,
  { at, now, newId, id, keysTo }: Numbered & { readonly id: string; readonly keysTo: string },
): void {
  const keyId = newId('key');
  tx.rings.insert({
    id,
    service: 'ks',
    name: `ring-${at}`,
    displayName: `Ring-${at}`,
    algorithm: 'aes256',
    activeKey: keyId,
    kem: 'x25519',
    publicKey: toBase64(systemRandom(44)),
    props: { team: `team-${at % 50}` },
    keyProps: {},
    maxEncryptCount: 2 ** 32,
    createdAt: now,
    updatedAt: now,
  });
  tx.ringKeys.insert({
    id: keyId,
    ringId: keysTo,
    algorithm: 'aes256',
    kem: 'x25519',
    pair: 0,
    wrapped: toBase64(systemRandom(80)),
    iv: toBase64(systemRandom(12)),
    props: {},
    createdAt: now,
  });
}

/** Returns the user's id. */
export function addUser(tx: Transaction<Tables>, { at, now, newId }: Numbered): string {
  const id = newId('user');
  tx.users.insert({
    id,
    username: `user-${at}`,
    email: `user-${at}@example.com`,
    firstName: 'Ada',
    lastName: `Example ${at}`,
    displayName: `Ada Example ${at}`,
    flagsText: JSON.stringify({ [`keyring.ring-${at}.encrypt`]: true, 'asset.search': true }),
    props: { desk: at },
    passwordHash: undefined,
    createdAt: now,
    updatedAt: now,
  });
  return id;
}

interface KeyAddition extends Numbered {
  readonly userId: string;
  readonly accountId: string;
  /** The ring that it may use. */
  readonly keyringName: string;
}

export function addApiKey(
  tx: Transaction<Tables>,
  { at, now, newId, userId, accountId, keyringName }: KeyAddition,
): void {
  tx.apiKeys.insert({
    name: `key ${at}`,
    expiresAt: undefined,
    addresses: [],
    createdBy: userId,
    id: newId('apik'),
    secretHash: toBase64Url(systemRandom(32)),
    active: true,
    accountId,
    userId,
    flagsText: JSON.stringify({ [`keyring.${keyringName}.encrypt`]: true, 'keyring.list': true }),
    rings: [keyringName],
    props: { program: `program-${at % 100}` },
    createdAt: now,
    updatedAt: now,
  });
}
