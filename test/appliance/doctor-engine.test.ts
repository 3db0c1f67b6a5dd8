// Findings about a database that several nodes share: settings that can lose data, missing or lagging standbys, clocks;
// also with a real PostgreSQL if the system has one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examineEngine, needSoundEngine } from '../../src/cluster/database-checks.ts';
import type { EngineFacts } from '../../src/store/shared/engine.ts';
import { openPostgres } from '../../src/store/shared/postgres.ts';
import { freePort } from '../support/free-port.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';

const name = 'postgres://kms@db/kms';
const at = Date.parse('2026-01-01T00:00:00Z');
const sound: EngineFacts = {
  version: '15.18',
  versionNumber: 150_018,
  fsync: true,
  fullPageWrites: true,
  synchronousStandbys: 'one',
  standbys: [{ name: 'one', isSynchronous: true }],
  tls: 'TLSv1.3',
  isLocal: false,
  isSuperuser: false,
  now: at,
};
const now = () => at;
const engineOf = (facts: Partial<EngineFacts>) => ({ facts: async () => ({ ...sound, ...facts }) });
const behind = { name: 'two', isSynchronous: false };

test('what is found of an engine, how bad it is and what it loses', async () => {
  const table: [Partial<EngineFacts>, string, RegExp?][] = [
    [{}, ''],
    [{ versionNumber: 140_000, standbys: undefined, isLocal: true, tls: undefined }, ''],
    [{ version: '13.9', versionNumber: 130_009 }, 'error engine-too-old', /is PostgreSQL 13\.9, expected 14 or later/],
    [{ fsync: false }, 'error engine-no-fsync', /a crash of its machine loses answered requests/],
    [{ fullPageWrites: false }, 'warning engine-torn-pages', /half a page/],
    [{ tls: undefined }, 'warning engine-in-clear', /something on the way ends TLS/],
    [{ isSuperuser: true }, 'advice engine-superuser', /superuser/],
    [{ standbys: [] }, 'warning engine-standby-away', /waits for a standby \(one\).*nothing can be written/],
    [{ standbys: [behind] }, 'warning engine-standby-away'],
    [{ synchronousStandbys: '', standbys: [] }, 'advice engine-alone', /everything is on its disk alone/],
    [
      { synchronousStandbys: '', standbys: [behind] },
      'warning engine-loses',
      /its standby is not synchronous \(two\): a failover to one loses the requests that were answered since it last/,
    ],
    [
      { synchronousStandbys: '', standbys: undefined },
      'warning engine-loses',
      /^no standby is synchronous: a failover/,
    ],
    [{ now: at + 999 }, ''],
    [{ now: at - 1_000 }, 'warning engine-clock', /are 1\.0 seconds apart/],
    [{ now: at + 29_999 }, 'warning engine-clock'],
    [{ now: at + 30_000 }, 'error engine-clock', /are 30\.0 seconds apart/],
    [{ now: at - 30_000, fsync: false }, 'error engine-no-fsync, error engine-clock'],
  ];
  for (const [facts, expected, message] of table) {
    const found = await examineEngine(engineOf(facts), name, now);
    assert.equal(found.map((each) => `${each.severity} ${each.name}`).join(', '), expected, JSON.stringify(facts));
    for (const each of found) {
      assert.equal(each.subject, name);
      assert.ok(each.advice.length > 0);
    }
    if (message) assert.match(found[0]?.message ?? '', message);
  }
});

test('at the start what loses something is said, and what nobody may serve from is refused', async () => {
  const said: string[] = [];
  const need = (facts: Partial<EngineFacts>) =>
    needSoundEngine(engineOf(facts), name, now, ({ level, message }) => said.push(`${level} ${message}`));
  await need({ synchronousStandbys: '', standbys: [behind], isSuperuser: true });
  assert.equal(said.length, 1);
  assert.match(
    said[0] ?? '',
    /^warn postgres:\/\/kms@db\/kms: its standby is not synchronous \(two\): .*; name a standby/,
  );
  for (const facts of [{ fsync: false }, { versionNumber: 130_000 }, { now: at + 31_000 }]) {
    await assert.rejects(need(facts), { code: 'refused', message: /^postgres:\/\/kms@db\/kms: / });
  }
  assert.equal(said.length, 1);
});

const programs = postgresPrograms();
if (!programs) {
  test('the facts of a PostgreSQL', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const found = async (postgres: Postgres): Promise<string> => {
    const engine = await openPostgres(postgres.address);
    try {
      return (await examineEngine(engine, name, Date.now)).map((each) => each.name).join();
    } finally {
      await engine.close();
    }
  };

  test('the facts of a PostgreSQL, with its settings as they are and otherwise', async () => {
    const plain = new Postgres(programs, { port: await freePort() });
    try {
      const engine = await openPostgres(plain.address);
      const { version, versionNumber, now: theirs, ...rest } = await engine.facts();
      assert.ok(version.startsWith(String(Math.floor(versionNumber / 10_000))));
      assert.ok(Math.abs(theirs - Date.now()) < 5_000);
      assert.deepEqual(rest, {
        fsync: true,
        fullPageWrites: true,
        synchronousStandbys: '',
        standbys: [],
        tls: undefined,
        isLocal: true,
        isSuperuser: true,
      });
      await engine.close();
      assert.equal(await found(plain), 'engine-superuser,engine-alone');
    } finally {
      plain.end();
    }
    const careless = new Postgres(programs, {
      port: await freePort(),
      settings: ['fsync=off', 'full_page_writes=off'],
    });
    try {
      assert.equal(await found(careless), 'engine-no-fsync,engine-torn-pages,engine-superuser,engine-alone');
    } finally {
      careless.end();
    }
  });
}
