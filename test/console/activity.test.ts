// Activity as the console asks for it: bounded, without duplicates, by filters in the page's address.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Client } from '../../src/client/client.ts';
import { csv, jsonLines } from '../../src/console/activity/export.ts';
import { keyDetailsOf, keyWordsOf } from '../../src/console/activity/key-words.ts';
import { moreText } from '../../src/console/activity/more-things.ts';
import {
  type ActivityRecord,
  aboutFilters,
  activityFields,
  alikeTogether,
  emptyTail,
  isSubjectKind,
  namesWith,
  newestActivity,
  shownFilters,
  type Tail,
  tailStart,
  withoutOwn,
  withPage,
} from '../../src/console/activity/records.ts';
import { detailTexts, outcomeOf, statusText, wordsOf, wordsOfRecord } from '../../src/console/activity/words.ts';
import { ownActions } from '../../src/model/actions.ts';
import type { ResourceRef } from '../../src/model/activity-details.ts';

function record(number: number): ActivityRecord {
  const id = `act_${String(number).padStart(8, '0')}`;
  const rest = { keyid: 'apik_a', props: {}, action: 'keyring.encrypt', ringname: 'r', validAction: true, status: 200 };
  return { id, createdAt: number, ...rest };
}

/** A log of `total` records that notes its searches. */
function log(total: number) {
  const asked: object[] = [];
  const searchActivity: Client['searchActivity'] = async (input = {}) => {
    asked.push(input);
    const limit = Number(input.limit);
    const from = total - Number(input.cursor ?? 0);
    const data = Array.from({ length: Math.min(limit, from) }, (_, index) => record(from - index));
    const next = total - from + data.length;
    const hasMore = next < total;
    const pagination = { limit, count: data.length, hasMore, ...(hasMore && { nextCursor: String(next) }) };
    return { data, pagination };
  };
  return { asked, searchActivity };
}

import { shownTime } from '../../src/console/parts/search-fields.ts';

test('everything is fetched where it is little, in as few pages as there can be', async () => {
  const { asked, searchActivity } = log(12_345);
  const { records, isCut } = await newestActivity(searchActivity, { ring: 'r', start: 5 }, { most: 30_000 });
  assert.deepEqual(
    [records.length, records[0]?.createdAt, records.at(-1)?.createdAt, isCut],
    [12_345, 12_345, 1, false],
  );
  assert.deepEqual(asked, [
    { ring: 'r', start: 5, limit: 10_000 },
    { ring: 'r', start: 5, limit: 10_000, cursor: '10000' },
  ]);
});

test('the newest alone are fetched where it is much', async () => {
  const { asked, searchActivity } = log(100_000);
  const { records, isCut } = await newestActivity(searchActivity, {}, { most: 15_000 });
  assert.deepEqual([records.length, records.at(-1)?.createdAt, isCut, asked.length], [15_000, 85_001, true, 2]);
  const exact = await newestActivity(log(500).searchActivity, {}, { most: 500 });
  assert.deepEqual([exact.records.length, exact.isCut], [500, false]);
});

test('a live view holds each record once and no more than its bound', () => {
  const page = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, index) => record(from - index));
  const most = 50;
  let tail: Tail = emptyTail;
  assert.equal(tailStart(tail, 1_000), 1_000);
  tail = withPage(tail, page(30, 21), { hasMore: false, most });
  tail = withPage(tail, page(35, 21), { hasMore: false, most });
  assert.deepEqual([tail.records.length, tail.added, tail.isGapped], [15, 5, false]);
  tail = withPage(tail, page(35, 21), { hasMore: false, most });
  assert.deepEqual([tail.records.length, tail.added], [15, 0]);
  tail = withPage(tail, page(90, 30), { hasMore: true, most });
  assert.deepEqual([tail.records.length, tail.records[0]?.createdAt, tail.isGapped], [50, 90, false]);
  tail = withPage(tail, page(300, 200), { hasMore: true, most });
  assert.deepEqual([tail.records.length, tail.isGapped], [50, true]);
  assert.equal(new Set(tail.records.map(({ id }) => id)).size, 50);
  assert.equal(tailStart({ ...emptyTail, records: [record(60_000), record(70_000)] }, 1_000), 65_000);
  assert.equal(tailStart({ ...emptyTail, records: [record(2_000)] }, 1_000), 1_000);
  assert.equal(tailStart(emptyTail, undefined), undefined);
  // Written in 2016 according to its id, with the time of a program whose clock was wrong.
  const ahead = { ...record(9e12), id: 'act_01arz3ndektsv4rrffq69g5fav' };
  assert.equal(tailStart({ ...emptyTail, records: [ahead] }, undefined), 1_469_922_850_259 - 5_000);
});

test('filters go into the address and come back', () => {
  const { empty, filters } = activityFields;
  const fields = { ...empty, ring: 'Löhne & more', valid: 'false', start: '2026-01-02T03:04', props: '{"a":1}' };
  const query = activityFields.toQuery(fields);
  assert.deepEqual(Object.keys(query).sort(), ['props', 'ring', 'start', 'valid']);
  assert.deepEqual(activityFields.fromQuery(new URLSearchParams(query)), fields);
  const start = Date.UTC(2026, 0, 2, 3, 4);
  assert.deepEqual(filters(fields), { filters: { ring: 'Löhne & more', valid: false, start, props: { a: 1 } } });
  assert.deepEqual(filters({ ...empty, end: '2026-01-02T03:04' }), { filters: { end: start + 59_999 } });
  assert.deepEqual(filters(empty), { filters: {} });
});

test('times are typed and shown in the zone of who reads, and stand in the address in UTC', () => {
  const before = process.env.TZ;
  process.env.TZ = 'Asia/Kolkata';
  try {
    const typed = activityFields.typed((name) => (name === 'start' ? '2026-01-02T03:04' : ''));
    assert.equal(typed.start, '2026-01-01T21:34');
    assert.equal(shownTime(typed.start), '2026-01-02T03:04');
    assert.deepEqual(activityFields.filters(typed), { filters: { start: Date.UTC(2026, 0, 1, 21, 34) } });
    assert.equal(shownTime('2026-01-01T21:34:05.006'), '2026-01-02T03:04:05.006');
    for (const wrong of ['', 'now', '2026-13-01T00:00', '2026-01-01']) {
      assert.equal(shownTime(wrong), '');
      assert.equal(activityFields.typed(() => wrong).start, wrong);
    }
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
});

test('one’s own reading of the log is left out, unless it is asked for', () => {
  const own = { keyid: 'user_1', action: 'activity.read' };
  assert.deepEqual(withoutOwn({ ring: 'r' }, 'user_1', false), { ring: 'r', exclude: own });
  for (const [filters, id, shows] of [
    [{ ring: 'r' }, 'user_1', true],
    [{ ring: 'r' }, undefined, false],
    [{ action: 'activity.read' }, 'user_1', false],
  ] as const) {
    assert.deepEqual(withoutOwn(filters, id, shows), filters);
  }
});

test('flags are asked for by name, or any', () => {
  const { empty, filters } = activityFields;
  assert.deepEqual(filters({ ...empty, granted: 'Any', revoked: 'user.read', address: ' 10.0.0.0/8 ' }), {
    filters: { granted: true, revoked: 'user.read', address: '10.0.0.0/8' },
  });
});

test('filters that make no sense are told at their fields', () => {
  const { empty, filters } = activityFields;
  const wrong = { ...empty, start: 'yesterday', end: '2026-13-01T00:00', props: '[1]' };
  const result = filters(wrong);
  assert.ok('problems' in result);
  assert.deepEqual(Object.keys(result.problems).sort(), ['end', 'props', 'start']);
  const reversed = filters({ ...empty, start: '2026-01-02T00:00', end: '2026-01-01T00:00' });
  assert.deepEqual('problems' in reversed && reversed.problems, { end: 'This is before the start.' });
});

test('every action of the appliance has words, in which nothing is missing', () => {
  for (const action of ownActions) {
    const words = wordsOf(action);
    assert.ok(words, action);
    assert.match(words.past, /^[a-z][a-zA-Z ]+$/, action);
    assert.equal(
      words.things === '',
      !/( with|of|to| at| the| for| back|approved|denied|acknowledged|created|changed|deleted|listed|searched|invited|checked|rotated|restored|imported|exported)$/.test(
        words.past,
      ),
    );
  }
  assert.equal(wordsOf('shop.refund'), undefined);
  assert.equal(wordsOf('keyring.encrpyt'), undefined);
  assert.equal(wordsOf('constructor'), undefined);
  const outcome = (validAction: boolean, status: number) => outcomeOf({ ...record(1), validAction, status });
  assert.deepEqual(
    [outcome(true, 200), outcome(false, 403), outcome(true, 404), outcome(false, 200)],
    ['done', 'denied', 'failed', 'denied'],
  );
});

test('what was done to a managed key is told as its record says, and old records read like new ones', () => {
  const said = (action: string, props: Record<string, unknown>, more: object = {}) => {
    const each = { ...record(1), action, props, ...more };
    const { past, base, after = '' } = keyWordsOf(each) ?? {};
    return [past, base, after, ...keyDetailsOf(each)].filter((text) => text !== undefined && text !== '').join('; ');
  };
  assert.equal(said('key.state', { state: 'suspended' }), 'suspended; suspend');
  assert.equal(said('key.state', { state: 'active', keyVersion: 2 }), 'activated version 2 of; activate version 2 of');
  assert.equal(
    said('key.state', { state: 'compromised', dialect: 'aws' }),
    'marked; mark; as compromised; through AWS KMS',
  );
  assert.equal(
    said('key.state', {}),
    'left the state of; leave the state of; as it was',
    'it was in that state before',
  );
  const refused = { validAction: false, status: 403 };
  assert.equal(said('key.state', {}, refused), '', 'a refused one has the words of its action');
  assert.equal(said('key.import', { transfer: 'wrapped' }), 'imported; import; wrapped');
  assert.equal(said('key.import', { transfer: 'public' }), 'imported; import; as a public key');
  assert.equal(
    said('key.export', { transfer: 'plaintext', keyVersion: 3 }),
    'exported version 3 of; export version 3 of; in clear',
  );
  assert.equal(said('key.encrypt', { keyVersion: 3, dialect: 'vault' }), 'version 3; through Vault');
  assert.equal(said('transit.rewrap', { keyVersion: 3, fromKeyVersion: 1 }), 'version 3 from version 1');
  assert.equal(said('key.encrypt', { dialect: 'other' }), 'through other');
  assert.equal(said('keyring.encrypt', { keyVersion: 3, dialect: 'vault' }), '', 'it is about no managed key');
  assert.equal(
    said('key.state', { state: 'suspended' }, { reporter: 'apik_b' }),
    '',
    'these are words of another program',
  );
  assert.deepEqual(wordsOf('transit.encrypt'), wordsOf('key.encrypt'));
  assert.equal(wordsOf('key.mac')?.past, 'made MACs with');
});

test('a status is told by its cause: what was wrong about a login or a password, and no more than is known', () => {
  const refused = { ...record(1), status: 400, validAction: false, keyid: 'user_a' };
  const login = { ...refused, action: 'session.create' };
  for (const [of, text] of [
    [login, 'wrong password or passkey'],
    [{ ...login, keyid: 'apik_a' }, 'wrong secret'],
    [{ ...login, props: { secondFactor: 'missing' } }, 'the password was right, the second factor was missing'],
    [{ ...login, props: { secondFactor: 'wrong' } }, 'the password was right, the second factor was wrong'],
    [{ ...refused, action: 'user.password' }, 'the current password was wrong'],
    [{ ...refused, action: 'user.remove-second-factor' }, 'the current password or the code was wrong'],
    [{ ...login, reporter: 'apik_b' }, 'the request was not valid'],
    [{ ...login, validAction: true }, 'the request was not valid'],
    [{ ...record(1), status: 400 }, 'the request was not valid'],
    [{ ...record(1), status: 200 }, 'done'],
    [{ ...record(1), status: 429 }, 'too many attempts: it had to wait'],
    [{ ...record(1), status: 418 }, 'the request was refused'],
    [{ ...record(1), status: 500 }, 'the service failed'],
  ] as const) {
    assert.equal(statusText(of), text);
  }
});

test('a key that is disabled or enabled is said to be, and to have lost or gained no flags', () => {
  const flags = ['keyring.payroll.encrypt'];
  for (const [deed, texts] of [
    [{ changed: ['active'], revoked: flags }, ['disabled']],
    [{ changed: ['active', 'name'], granted: flags }, ['enabled', 'changed: name']],
    [{ changed: ['active'] }, ['disabled or enabled']],
    [{ changed: ['flags'], revoked: flags }, ['changed: flags', 'flags revoked: keyring.payroll.encrypt']],
    [{ changed: ['a', 'b', 'c', 'd', 'e', 'f'] }, ['changed: a, b, c, d and 2 more']],
    [{}, []],
  ] as const) {
    assert.deepEqual(detailTexts(deed), texts);
  }
});

test('the first user sets themselves up; later ones are created', () => {
  const made = (keyid: string) =>
    wordsOfRecord({ ...record(1), keyid, action: 'user.create', props: { object: { type: 'user', id: 'user_a' } } });
  assert.deepEqual([made('user_a')?.past, made('user_b')?.past], ['set up the first user', 'created']);
});

test('all about one thing is one search, for a keyring of its own kind', () => {
  assert.deepEqual(aboutFilters('asym-keyring', 'payroll'), { about: 'payroll', aboutType: 'asym-keyring' });
  assert.deepEqual(aboutFilters('user', 'user_a'), { about: 'user_a' });
  assert.ok(!isSubjectKind('session') && !isSubjectKind('constructor') && isSubjectKind('asset'));
});

test('who is gone by now is called what the log says they were called', () => {
  const thing = (type: string, id: string, name: string) => ({ ...record(1), props: { object: { type, id, name } } });
  const records = [thing('user', 'user_a', 'Ada'), thing('user', 'user_a', 'Old'), thing('keyring', 'ring_a', 'r')];
  const said = { ...thing('user', 'user_b', 'Liar'), reporter: 'apik_x' };
  assert.deepEqual([...namesWith(new Map(), [...records, said])], [['user_a', 'Ada']]);
  assert.deepEqual([...namesWith(new Map([['user_a', 'Now']]), records)], [['user_a', 'Now']]);
});

test('what is said again and again is read once, what is said otherwise is not', () => {
  const other = { ...record(3), status: 403, validAction: false };
  const groups = alikeTogether([record(6), record(5), record(4), other, record(2), { ...record(1), address: '::1' }]);
  assert.deepEqual(
    groups.map((group) => group.map(({ createdAt }) => createdAt)),
    [[6, 5, 4], [3], [2], [1]],
  );
  assert.deepEqual(alikeTogether([]), []);
});

test('an export has what is shown: JSON Lines as the API answers, CSV that no spreadsheet runs', () => {
  const object = { type: 'apikey', id: 'apik_b', name: '=HYPERLINK("http://x","y")' };
  const records: ActivityRecord[] = [
    { ...record(2), address: '203.0.113.7', props: { object } },
    { ...record(1), action: '-1+1|cmd', ringname: '', reporter: 'apik_r', validAction: false, status: 403 },
  ];
  const lines = jsonLines(records).split('\n');
  assert.deepEqual(
    lines.slice(0, 2).map((line) => JSON.parse(line)),
    records,
  );
  assert.deepEqual(lines.slice(2), ['']);
  const rows = csv(records, new Map([['apik_a', '@SUM(1+1) "Ada"\nB']])).split('\r\n');
  assert.equal(rows[0]?.split(',').length, 14);
  assert.equal(rows.at(-1), '');
  assert.ok(rows[1]?.startsWith(`"1970-01-01T00:00:00.002Z","'@SUM(1+1) ""Ada""\nB","apik_a","keyring.encrypt","r"`));
  assert.ok(rows[1]?.includes(`"apikey","apik_b","'=HYPERLINK(""http://x"",""y"")","yes","200","203.0.113.7",""`));
  assert.ok(rows[2]?.includes(`"'-1+1|cmd","","","","","no","403","","apik_r","","act_00000001"`));
  for (const start of ['=', '+', '-', '@', '\t', '\r', '\n', ' =', '\u200b=', '＝', '\u00a0+', '|', '%']) {
    const [, row = ''] = csv([record(1)], new Map([['apik_a', `${start}1`]])).split('Z",');
    assert.ok(row.startsWith(`"'`), JSON.stringify(start));
  }
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      const text = csv([record(1)], new Map([['apik_a', name]]));
      const [, cell = ''] = /Z","((?:[^"]|"")*)","apik_a"/.exec(text) ?? assert.fail(text);
      const read = cell.replaceAll('""', '"');
      assert.ok(read === name || read === `'${name}`);
      assert.doesNotMatch(read, /^[\s\p{Z}]*[=+\-@]/u);
    }),
  );
});

test('reads are left out until they are asked for, and where an action is searched for', () => {
  const hidden = { showsReads: false, showsOwn: false };
  const exclude = { keyid: 'user_1', action: 'activity.read' };
  assert.deepEqual(shownFilters({ ring: 'r' }, 'user_1', hidden), { ring: 'r', reads: false });
  assert.deepEqual(shownFilters({ ring: 'r' }, undefined, hidden), { ring: 'r', reads: false });
  assert.deepEqual(shownFilters({}, 'user_1', { ...hidden, showsReads: true }), { exclude });
  assert.deepEqual(shownFilters({ action: 'keyring.list' }, 'user_1', hidden), { action: 'keyring.list', exclude });
  assert.deepEqual(shownFilters({}, 'user_1', { ...hidden, showsOwn: true }), {});
});

test('a record’s sentence tells of other things, and not of parts of the same thing', () => {
  const thing = (type: string) => ({ type, id: `${type}_1`, name: 'a' }) as ResourceRef;
  const told = (object: string | undefined, objects: readonly string[], objectCount?: number) =>
    moreText({
      ...(object !== undefined && { object: thing(object) }),
      objects: objects.map(thing),
      ...(objectCount !== undefined && { objectCount }),
    });
  for (const ring of ['keyring', 'asym-keyring', 'managed-key']) assert.equal(told(ring, ['key']), '', ring);
  assert.equal(told('managed-key', ['key', 'key'], 40), '');
  assert.equal(told('managed-key', ['managed-key']), ' and 1 more');
  assert.equal(told('apikey', ['user', 'user']), '');
  assert.equal(told('account', ['apikey']), ' with 1 API key');
  assert.equal(told('user', ['apikey', 'apikey'], 1200), ' with 1,200 API keys');
  assert.equal(told(undefined, ['session', 'session', 'session']), ' and 2 more');
  assert.equal(told(undefined, ['session']), '');
  assert.equal(told('user', []), '');
});
