// Long answers and the memory budget for them: a list reserves it before anything is read, every other request before
// anything is done, and a request that finds none is refused without effect, but recorded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Looks, pieceLength, readInParts } from '../../src/core/pages.ts';
import { KmsError } from '../../src/errors.ts';
import { answeredList } from '../../src/http/answer.ts';
import { silentLogger } from '../../src/http/appliance-port.ts';
import type { AnswerRoom, Holder } from '../../src/http/request.ts';
import { brokenOff } from '../../src/http/request-log.ts';
import { streamed } from '../../src/http/respond.ts';
import type { Tables } from '../../src/store/port.ts';
import type { Page, PageRequest } from '../../src/store/sql.ts';
import { testAppliance } from '../support/appliance.ts';

const longestList = 4 * 1024 * 1024;
const big = 'x'.repeat(200_000);

interface Told extends AnswerRoom {
  /** Calls to the budget, in order: `take 4194304`, `now 200123`, `left 5`. */
  readonly told: string[];
  readonly holders: Holder[];
}

/** A budget that admits everything, or nothing. */
function roomOf(isThere: boolean): Told {
  const told: string[] = [];
  const holders: Holder[] = [];
  const ask = (what: string, bytes: number, holder: Holder): void => {
    told.push(`${what} ${bytes}`);
    holders.push(holder);
    if (!isThere) throw new KmsError('unavailable', 'no room', { retryAfter: 5 });
  };
  return {
    told,
    holders,
    take: async (bytes, holder) => ask('take', bytes, holder),
    takeNow: (bytes, holder) => ask('now', bytes, holder),
    left: (bytes) => void told.push(`left ${bytes}`),
    release: () => void told.push('release'),
    cut: () => void told.push('cut'),
  };
}

async function applianceWithAssets() {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'r' });
  const encrypt = (asset: object, room?: AnswerRoom) =>
    a.call('POST', '/ks/encrypt', { ringname: 'r', asset }, room ? { env: { room } } : {});
  const { id } = (await encrypt({ data: { big } })).body.asset;
  for (let n = 0; n < 3; n++) await encrypt({ data: { big, n } });
  return { a, encrypt, id };
}

test('a list takes room before it is made, tells how long it is, and how much is left as it is read', async () => {
  const { a } = await applianceWithAssets();
  const room = roomOf(true);
  const { status, text, body, headers } = await a.call('POST', '/assets/search', {}, { env: { room } });
  assert.equal(status, 200);
  assert.equal(body.data.length, 4);
  assert.deepEqual(body.pagination, { limit: 100, count: 4, hasMore: false });
  assert.equal(headers.get('content-length'), String(Buffer.byteLength(text)));
  assert.equal(room.told[0], 'take 4194304');
  assert.equal(room.told[1], `left ${Buffer.byteLength(text)}`);
  const left = room.told.slice(1).map((each) => Number(each.split(' ')[1]));
  assert.ok(left.length > 3 && left.every((bytes, n) => n === 0 || bytes < (left[n - 1] ?? 0)), left.join());
  assert.equal(left.at(-1), 0);
  assert.deepEqual(room.holders, [{ tenant: a.tenants[0]?.handle.tenant.id, caller: a.root.keyid }]);
  const plain = await a.call('POST', '/assets/search', {});
  assert.equal(plain.text, text, 'the same without a budget');
});

test('a page ends at 4 MiB of bytes, in whatever script it is, and the next one goes on', async () => {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'r' });
  const text = '漢'.repeat(300_000);
  for (let n = 0; n < 8; n++) await a.call('POST', '/ks/encrypt', { ringname: 'r', asset: { data: { text, n } } });
  const seen: number[] = [];
  let cursor: string | undefined;
  do {
    const path = cursor === undefined ? '/assets/search' : `/assets/search?cursor=${encodeURIComponent(cursor)}`;
    const { status, body, text: page } = await a.call('POST', path, {});
    assert.equal(status, 200);
    const bytes = Buffer.byteLength(page);
    assert.ok(bytes < 4 * 1024 * 1024 + Buffer.byteLength(text) + 10_000, `${bytes} bytes`);
    seen.push(...body.data.map((asset: { data: { n: number } }) => asset.data.n));
    cursor = body.pagination.nextCursor;
  } while (cursor !== undefined);
  assert.deepEqual(seen, [7, 6, 5, 4, 3, 2, 1, 0]);
});

test('of short texts too, which take three times as many bytes as characters', async () => {
  const a = await testAppliance();
  await a.call('POST', '/ks/keyrings', { name: 'r' });
  const asset = { data: { text: '漢'.repeat(225) } };
  const all = 6000;
  for (let n = 0; n < all; n += 500) {
    const made = Array.from({ length: 500 }, () => a.call('POST', '/ks/encrypt', { ringname: 'r', asset }));
    for (const { status } of await Promise.all(made)) assert.equal(status, 200);
  }
  const page = async (query: string): Promise<{ bytes: number; count: number; nextCursor: string }> => {
    const { body, text } = await a.call('POST', `/assets/search?limit=10000${query}`, {});
    return { bytes: Buffer.byteLength(text), ...body.pagination };
  };
  const first = await page('');
  assert.ok(first.bytes > longestList && first.bytes < longestList + 2000, `${first.bytes} bytes`);
  const second = await page(`&cursor=${encodeURIComponent(first.nextCursor)}`);
  assert.deepEqual([first.count + second.count, second.nextCursor], [all, undefined]);
});

test('whatever a list is read from, it is the JSON of its items that is bound', async () => {
  const item = { text: '\u0001漢'.repeat(100) };
  const looks: Looks = { look: async (fn) => fn({} as Tables), durable: async () => [] };
  const read = (_: Tables, { limit, after = 0 }: PageRequest): Page<object> => {
    const count = Math.min(limit, 10);
    return { items: Array(count).fill(item), next: after + count };
  };
  const each = Buffer.byteLength(JSON.stringify(item)) + 1;
  const fit = Math.ceil(longestList / each / 10) * 10;
  const written = await readInParts(looks, { limit: 10_000 }, read);
  assert.deepEqual([written.items.count, written.items.length, written.next], [fit, fit * each, fit]);
  const less = await readInParts(looks, { limit: 10_000 }, read, () => 'x');
  assert.deepEqual([less.items.count, less.next], [10_000, 10_000], 'of less it is what was asked for');
  assert.deepEqual(new Set(less.items.parsed()), new Set(['x']));
});

test('a list for another dialect has its room as any other, and gives it back where it is refused', async () => {
  const a = await testAppliance();
  const list = (room: AnswerRoom) =>
    a.call('GET', '/v1/transit/keys?list=true', undefined, { env: { surface: 'vault', room } });
  const refused = roomOf(true);
  assert.equal((await list(refused)).status, 404, 'there is none yet');
  assert.deepEqual(refused.told, ['take 4194304', 'left 0']);
  await a.call('POST', '/managed-keys', { name: 'short' });
  const room = roomOf(true);
  assert.equal((await list(room)).status, 200);
  assert.deepEqual(room.told, ['take 4194304', 'left 0']);
  for (let n = 0; n < 300; n++) await a.call('POST', '/managed-keys', { name: `${'n'.repeat(60)}-${n}` });
  const longer = roomOf(true);
  const { text } = await list(longer);
  assert.equal(JSON.parse(text).data.keys.length, 301);
  // Never released in between, or another request would take it.
  assert.deepEqual(longer.told.slice(0, 2), ['take 4194304', `left ${Buffer.byteLength(text)}`]);
  assert.ok(longer.told.slice(1).every((each) => each.startsWith('left ')) && longer.told.at(-1) === 'left 0');
});

test('a short list gives its room back, and so does one that is refused', async () => {
  const { a } = await applianceWithAssets();
  for (const [path, status] of [
    ['/ks/keyrings', 200],
    ['/ks/keyrings?cursor=x', 400],
    ['/ks/keyrings/none/keys', 404],
  ] as const) {
    const room = roomOf(true);
    assert.equal((await a.call('GET', path, undefined, { env: { room } })).status, status);
    assert.deepEqual(room.told, ['take 4194304', 'left 0'], path);
  }
  const stranger = roomOf(true);
  assert.equal((await a.call('GET', '/ks/keyrings', undefined, { key: 'kms_x', env: { room: stranger } })).status, 401);
  const weak = await a.keyWith('asset.read');
  assert.equal(
    (await a.call('GET', '/ks/keyrings', undefined, { key: weak.key, env: { room: stranger } })).status,
    403,
  );
  assert.ok(!stranger.told.some((each) => each.startsWith('take')), 'who may not ask takes none');
});

test('a list without room is 503 with Retry-After, and recorded', async () => {
  const { a } = await applianceWithAssets();
  for (const [method, path] of [
    ['GET', '/ks/keyrings'],
    ['GET', '/auth/users'],
    ['POST', '/assets/search'],
    ['POST', '/auth/search/activity'],
  ] as const) {
    const room = roomOf(false);
    const body = method === 'POST' ? {} : undefined;
    const { status, headers } = await a.call(method, path, body, { env: { room } });
    assert.deepEqual([status, headers.get('retry-after')], [503, '5'], path);
    const [record] = await a.activity();
    assert.deepEqual([record?.status, record?.validAction, record?.keyid], [503, true, a.root.keyid]);
  }
});

test('any other long answer without room does nothing, and is recorded', async () => {
  const { a, encrypt, id } = await applianceWithAssets();
  const none = roomOf(false);
  const assets = async () => (await a.call('POST', '/assets/search', {})).body.data.length;
  assert.equal((await a.call('GET', `/assets/${id}`, undefined, { env: { room: none } })).status, 503);
  assert.equal((await encrypt({ data: { big, other: true } }, none)).status, 503);
  assert.equal((await a.activity())[0]?.status, 503);
  assert.equal(await assets(), 4, 'the asset was not made');
  assert.equal((await a.call('DELETE', `/assets/${id}`, undefined, { env: { room: none } })).status, 503);
  assert.equal(await assets(), 4, 'nor deleted');
  const long = { uid: 'a', props: { big } };
  assert.equal((await a.call('POST', '/auth/accounts', long, { env: { room: none } })).status, 503);
  assert.equal((await a.call('GET', '/auth/accounts/a?uid=true')).status, 404);
  assert.ok(
    none.told.every((each) => /^now 2\d{5}$/.test(each)),
    none.told.join(),
  );

  const short = await a.call('POST', '/ks/encrypt', { ringname: 'r' }, { env: { room: none } });
  assert.equal(short.status, 200, 'short ones need no room');

  const some = roomOf(true);
  const { status, text, headers } = await a.call('GET', `/assets/${id}`, undefined, { env: { room: some } });
  assert.deepEqual([status, headers.get('content-length')], [200, String(Buffer.byteLength(text))]);
  assert.equal(some.told[0], `now ${Buffer.byteLength(text)}`);
  assert.equal(some.told.at(-1), 'left 0');
});

test('others have their turns while a long answer goes out to a quick reader, and nothing goes on once it is gone', async () => {
  const data = Array.from({ length: 80 }, () => 'x'.repeat(pieceLength));
  const read = async (most: number): Promise<{ turns: number; bytes: number }> => {
    const left: number[] = [];
    const room = { ...roomOf(true), left: (bytes: number) => void left.push(bytes) };
    const reader = (await answeredList({ data }, room, undefined)).stream?.getReader();
    assert.ok(reader);
    const begun = left.length;
    let turns = 0;
    const count = (): void => {
      turns++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    let bytes = 0;
    for (let pieces = 0; pieces < most; pieces++) {
      const { value } = await reader.read();
      if (!value) break;
      bytes += value.length;
    }
    // Requests one more piece and cancels.
    const last = reader.read();
    await reader.cancel();
    assert.equal((await last).done, true);
    clearImmediate(counting);
    const told = left.length;
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    assert.equal(left.length, told);
    assert.ok(told - begun <= most);
    return { turns, bytes };
  };
  const whole = await read(Number.POSITIVE_INFINITY);
  assert.ok(whole.bytes > 80 * pieceLength);
  assert.ok(whole.turns >= 4, `${whole.turns} turns`);
  // The next piece would have to wait.
  const half = await read(32);
  assert.ok(half.bytes > 31 * pieceLength && half.turns >= 1);
});

test('an answer that breaks off cuts its connection before anybody could end it', async () => {
  const room = roomOf(true);
  const long = 'a'.repeat(pieceLength);
  async function* pieces(): AsyncGenerator<string> {
    yield long;
    throw new Error('gone');
  }
  const { stream } = streamed('text/plain', pieces(), brokenOff(silentLogger, '/x', room));
  const seen: string[] = [];
  const read = async (): Promise<void> => {
    for await (const piece of stream ?? []) seen.push(new TextDecoder().decode(piece));
  };
  await assert.rejects(read(), /gone/);
  assert.deepEqual([seen, room.told], [[long], ['cut']]);
});
