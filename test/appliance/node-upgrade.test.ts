// A node with a newer schema, if the system has a PostgreSQL: while an older node is there it answers 503 with the
// reason, then continues by itself, and stops when asked to.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { serve } from '../../src/server/serve.ts';
import { openPostgres } from '../../src/store/shared/postgres.ts';
import { type Migration, systemMigrations, tenantMigrations } from '../../src/store/tables/migrations.ts';
import { freePort } from '../support/free-port.ts';
import { Postgres, postgresPrograms } from '../support/postgres.ts';
import { until } from '../support/until.ts';

const programs = postgresPrograms();

if (!programs) {
  test('a node with a newer schema', (context) => {
    context.diagnostic('there is no PostgreSQL on this system: nothing was tried');
  });
} else {
  const base = mkdtempSync(join(tmpdir(), 'kms-node-upgrade-'));
  const postgres = new Postgres(programs);
  const engine = await openPostgres(postgres.address);
  after(async () => {
    await engine.close();
    postgres.end();
    rmSync(base, { recursive: true, force: true });
  });

  test('a node with a newer schema waits for older ones, says so, and goes on by itself', async () => {
    const store = { url: `postgres://kms@/postgres?host=${postgres.dir}`, isListed: true, env: () => undefined };
    const data = join(base, 'node');
    const { keyFile, apiKey } = await initAppliance({ data, store });
    const first = await openAppliance({ data, store });
    const made = new Request('http://kms.local/ks/keyrings', {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'before' }),
    });
    assert.equal((await first.app.fetch(made, {})).status, 200);
    await first.close();
    const schemas = { system: systemMigrations.length, tenant: tenantMigrations.length };
    const old = { id: 'old', build: '0.0.9', schemas, appendRule: 1, places: ['https://old.example.org'] };
    await engine.noteNode(old, true);
    // From here on this is a newer program. Cast: only its tests change the list.
    (systemMigrations as Migration[]).push({ name: 'later', statements: ['CREATE TABLE later (id TEXT)'] });
    try {
      const port = await freePort();
      const options = { data, store, listen: `127.0.0.1:${port}`, logLevel: 'silent' } as const;
      const ready = async (): Promise<{ readonly status: number; readonly text: string }> => {
        const response = await until('it listens', () =>
          fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined),
        );
        return { status: response.status, text: await response.text() };
      };
      const stopping = new AbortController();
      const ended = serve({ ...options, stopping: stopping.signal });
      ended.catch(() => {});
      const waiting = await ready();
      assert.equal(waiting.status, 503);
      assert.match(
        waiting.text,
        /wait to be brought up to the schema .* older nodes run: https:\/\/old\.example\.org \(0\.0\.9\)/,
      );
      stopping.abort();
      await assert.rejects(ended, { code: 'unavailable', message: /while older nodes run/ });

      const serving = serve(options);
      serving.catch(() => {});
      assert.equal((await ready()).status, 503);
      await engine.noteNode(old, false);
      await wait(1500);
      assert.equal((await ready()).status, 503, 'the old one is still there');
      await engine.forgetNode('old');
      const served = await serving;
      assert.equal((await ready()).status, 200);
      assert.equal((await engine.nodes())[0]?.schemas.system, schemas.system + 1);
      await served.close();
      assert.deepEqual(await engine.nodes(), []);
    } finally {
      (systemMigrations as Migration[]).pop();
    }
    // The older program again.
    await assert.rejects(serve({ data, store, listen: '127.0.0.1:0', logLevel: 'silent' }), {
      message: /schema version \d+, this program knows versions up to/,
    });
    const backups = readdirSync(data).filter((name) => /^before-migration-.*\.kms-backup$/.test(name));
    assert.equal(backups.length, 1, 'it is made once');
    const restored = join(base, 'restored');
    const from = join(data, backups[0] ?? '');
    await restoreAppliance({ from, data: restored, keys: { keyFile, env: () => undefined } });
    const appliance = await openAppliance({ data: restored, keyFile });
    const headers = { authorization: `Bearer ${apiKey.key}` };
    const asked = await appliance.app.fetch(new Request('http://kms.local/ks/keyrings', { headers }), {});
    assert.equal(asked.status, 200);
    const { data: rings } = await asked.json();
    assert.deepEqual(
      rings.map(({ name }: { name: string }) => name),
      ['before'],
      'all that was answered before it',
    );
    await appliance.close();
  });
}
