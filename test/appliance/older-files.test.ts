// Files replaced by an older copy, or cut at a record's end, while others stay new: a start refuses them, names their
// owner, and changes nothing; if the administrator accepts them it goes on, and records it. Also the case that no start
// can see: a whole directory put back, which clients notice.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { OpenAppliance } from '../../src/appliance/appliance.ts';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { rollbackWatch, type SeenState } from '../../src/client/rollback.ts';
import { examine } from '../../src/doctor/doctor.ts';
import { KmsError } from '../../src/errors.ts';
import type { ApplianceEvent } from '../../src/platform/events.ts';
import { serve } from '../../src/server/serve.ts';
import { until } from '../support/until.ts';
import { type Place, place } from './tenant-appliance.ts';

const headers = { 'content-type': 'application/json' };

async function fetchAs(appliance: OpenAppliance, tenant: string, path: string, body?: object): Promise<Response> {
  const init = body ? { method: 'POST', body: JSON.stringify(body) } : {};
  return appliance.fetchLocal(
    new Request(`http://kms.local${path}`, { ...init, headers: { ...headers, 'kms-tenant': tenant } }),
  );
}

async function makeRing(appliance: OpenAppliance, tenant: string, name: string): Promise<void> {
  assert.equal((await fetchAs(appliance, tenant, '/ks/keyrings', { name })).status, 200);
}

/** A closed appliance with a second tenant, and copies of it. */
interface Shelf extends Place {
  /** Relative to the data directory. */
  readonly blue: string;
  /** Opens it, makes a ring in the tenant, and closes it. */
  work(name: string, tenant?: string): Promise<void>;
  open(acceptOlder?: readonly string[], events?: ApplianceEvent[]): Promise<OpenAppliance>;
  /** Copies the directory as it is. */
  copy(): string;
  /** Replaces a file or directory by that of a copy. */
  putBack(copy: string, name: string): void;
}

async function shelf(): Promise<Shelf> {
  const p = await place();
  await p.local('POST', '/local/tenants', { name: 'blue', hosts: ['blue.example'] });
  await p.appliance.close();
  const { data } = p;
  const [first] = await dirOf(data);
  const blue = readdirSync(join(data, 'tenants')).find((name) => name !== first);
  let copies = 0;
  const open = (acceptOlder?: readonly string[], events?: ApplianceEvent[]): Promise<OpenAppliance> =>
    openAppliance({
      data,
      acceptOlder,
      onEvent: (event) => events?.push(event),
      baseUrl: () => 'https://new.example',
    });
  const self: Shelf = {
    ...p,
    appliance: p.appliance,
    blue: `tenants/${blue}`,
    open,
    async work(name, tenant = 'blue') {
      const appliance = await open();
      await makeRing(appliance, tenant, name);
      await appliance.close();
    },
    copy() {
      const to = `${data}.copy${++copies}`;
      cpSync(data, to, { recursive: true });
      chmodSync(to, 0o700);
      cpSync(`${data}.master.key`, `${to}.master.key`);
      return to;
    },
    putBack(copy, name) {
      rmSync(join(data, name), { recursive: true, force: true });
      if (existsSync(join(copy, name))) cpSync(join(copy, name), join(data, name), { recursive: true });
    },
  };
  await self.work('first', 'default');
  await self.work('first');
  return self;
}

/** The tenants' directories, that of the tenant which `init` made first. */
async function dirOf(data: string): Promise<string[]> {
  const appliance = await openAppliance({ data });
  const { data: tenants } = (await (await fetchAs(appliance, 'default', '/local/tenants')).json()) as {
    data: { name: string; dir?: string }[];
  };
  await appliance.close();
  assert.equal(tenants.length, 2);
  // The oldest directory is that of the first tenant.
  const dirs = readdirSync(join(data, 'tenants'));
  return dirs.sort(
    (a, b) => statSync(join(data, 'tenants', a)).birthtimeMs - statSync(join(data, 'tenants', b)).birthtimeMs,
  );
}

/** Hashes of all files but those that say which process has it open. */
function picture(data: string): Record<string, string> {
  const names = readdirSync(data, { recursive: true }).map(String).sort();
  const files = names.filter((name) => !/kms\.(pid|lock|sock)$/.test(name) && statSync(join(data, name)).isFile());
  return Object.fromEntries(
    files.map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(data, name)))
        .digest('hex'),
    ]),
  );
}

/** Checks that a start refuses with a message and changes nothing, and that `doctor` finds it too. */
async function refused(s: Shelf, message: RegExp, hint = /./): Promise<void> {
  const before = picture(s.data);
  for (const start of [
    () => s.open(),
    () => serve({ data: s.data, listen: '127.0.0.1:0', logLevel: 'silent', url: 'https://other.example' }),
  ]) {
    await assert.rejects(start as () => Promise<unknown>, (error: unknown) => {
      assert.ok(error instanceof KmsError, String(error));
      assert.match(error.message, message);
      assert.match(error.hint ?? '', hint);
      return true;
    });
    assert.deepEqual(picture(s.data), before, 'something was changed');
  }
  const { findings } = await examine({ data: s.data });
  assert.ok(
    findings.some(({ severity }) => severity === 'error'),
    'doctor finds nothing',
  );
  assert.deepEqual(picture(s.data), before, 'doctor changed something');
}

async function records(
  appliance: OpenAppliance,
  tenant: string,
): Promise<{ tenant: string; from: number; to: number }[]> {
  const found = await fetchAs(appliance, tenant, '/auth/search/activity', { action: 'system.accept-older' });
  const { data } = (await found.json()) as { data: { props: { tenant: string; from: number; to: number } }[] };
  return data.map(({ props }) => props);
}

function lastLog(dir: string): string {
  const [log] = readdirSync(dir)
    .filter((name) => name.startsWith('log-'))
    .sort()
    .reverse();
  return join(dir, log ?? '');
}

test('one tenant put back from an older copy: refused, and accepted once', async () => {
  await using s = await shelf();
  const older = s.copy();
  await s.work('later');
  s.putBack(older, s.blue);
  const message =
    /^the tenant blue is older than it was: tenants\/[0-9a-f]{16}\/log-0000000001\.kms ends at transaction ([0-9]+), and at 2[-0-9T:.]+Z there were ([0-9]+); nothing was changed$/;
  await refused(s, message, /find the newer files, or restore a backup; .* once: kms serve --accept-older blue$/);
  await assert.rejects(s.open(['default']), { message });
  await assert.rejects(s.open(['red']), { message: '--accept-older: there is no tenant red' });

  const events: ApplianceEvent[] = [];
  const accepted = await s.open(['Blue'], events);
  assert.match(
    events.map((event) => event.message).join('\n'),
    /^--accept-older blue: .* goes on from transaction [0-9]+/m,
  );
  const [record, more] = await records(accepted, 'blue');
  assert.ok(record && record.tenant === 'blue' && record.from > record.to && !more);
  assert.deepEqual(await records(accepted, 'default'), []);
  assert.ok(Number((await accepted.status()).copies.epoch.number) > 1, 'a new epoch');
  await accepted.close();
  // From here on it is up to date, and the option has no effect.
  await s.work('after');
  const needless: ApplianceEvent[] = [];
  await (await s.open(['blue'], needless)).close();
  assert.match(needless.map((event) => event.message).join('\n'), /--accept-older blue has no effect/);
  s.putBack(older, s.blue);
  await refused(s, message);
});

test('a log that was cut where a record ends', async () => {
  await using s = await shelf();
  const log = lastLog(join(s.data, s.blue));
  const { size } = statSync(log);
  await s.work('later');
  assert.ok(statSync(log).size > size);
  truncateSync(log, size);
  await refused(s, /the tenant blue is older than it was/);
});

test('a copy that went on elsewhere has a larger number, and another history', async () => {
  await using s = await shelf();
  const elsewhere = s.copy();
  await s.work('here');
  for (let n = 0; n < 4; n++) {
    const other = await openAppliance({ data: elsewhere });
    await makeRing(other, 'blue', `there-${n}`);
    await other.close();
  }
  s.putBack(elsewhere, s.blue);
  await refused(
    s,
    /the tenant blue is older than it was: .* holds a different history from the one with the transaction/,
  );
  const accepted = await s.open(['blue']);
  const [record] = await records(accepted, 'blue');
  assert.ok(record && record.from < record.to);
  await accepted.close();
});

test("the appliance's own store put back, alone and with a tenant", async () => {
  await using s = await shelf();
  const older = s.copy();
  await s.work('later');
  const newer = s.copy();
  s.putBack(older, 'system');
  const own = /^the appliance's own store is older than it was: system\/log-0000000001\.kms ends at transaction/;
  await refused(s, own, /kms serve --accept-older system$/);
  s.putBack(older, s.blue);
  await refused(
    s,
    /^the appliance's own store is older .*; the tenant blue is older/,
    /--accept-older system --accept-older blue$/,
  );
  s.putBack(newer, s.blue);
  const accepted = await s.open(['system']);
  for (const tenant of ['default', 'blue']) {
    const [record] = await records(accepted, tenant);
    assert.equal(record?.tenant, 'system');
  }
  await accepted.close();
  await (await s.open()).close();
});

test('what was noted is gone, damaged, or older', async () => {
  await using s = await shelf();
  const older = s.copy();
  await s.work('later');
  const newer = s.copy();
  const file = join(s.data, 'kms.witness');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  unlinkSync(file);
  await refused(
    s,
    /^the appliance's own store is older than it was: there is no kms\.witness/,
    /--accept-older system$/,
  );
  const bytes = readFileSync(join(newer, 'kms.witness'));
  bytes.writeUInt8(bytes.readUInt8(60) ^ 1, 60);
  writeFileSync(file, bytes);
  await refused(s, /^kms\.witness: it does not verify/, /--accept-older system/);
  await (await s.open(['system'])).close();
  await (await s.open()).close();
  // An older witness knows less than the stores, which does no harm while the system store is current.
  s.putBack(older, 'kms.witness');
  s.putBack(older, s.blue);
  await refused(s, /^the tenant blue is older than it was/);
});

test('a deleted tenant does not come back with older files', async () => {
  await using s = await shelf();
  const older = s.copy();
  await s.work('later');
  const open = await s.open();
  const deleting = new Request('http://kms.local/local/tenants/blue', { method: 'DELETE', headers });
  const { id } = (await (await open.fetchLocal(deleting)).json()) as { id: string };
  await open.close();
  s.putBack(older, s.blue);
  const again = await s.open();
  const restoring = () => fetchAs(again, 'default', `/local/tenants/${id}/restore`, {});
  const answer = await restoring();
  assert.equal(answer.status, 400);
  assert.match(((await answer.json()) as { message: string }).message, /is older than it was/);
  await again.close();
  const accepted = await s.open([id]);
  assert.equal((await fetchAs(accepted, 'default', `/local/tenants/${id}/restore`, {})).status, 200);
  const [record] = await records(accepted, 'blue');
  assert.equal(record?.tenant, id);
  await accepted.close();
});

test('everything put back together: the appliance cannot know, and clients that remember do, however far it went on', async () => {
  await using s = await shelf();
  const older = s.copy();
  const key = s.made.apiKey.key;
  const ask = async (appliance: OpenAppliance): Promise<Response> =>
    appliance.app.fetch(
      new Request('http://kms.local/ks/keyrings', { headers: { authorization: `Bearer ${key}`, host: 'kms.local' } }),
      {},
    );
  let kept: SeenState | undefined;
  const told: string[] = [];
  const see = async (response: Response): Promise<void> => {
    assert.equal(response.status, 200);
    const memory = {
      load: async () => (kept ? [kept] : []),
      async save(state: SeenState) {
        kept = state;
      },
    };
    const watch = rollbackWatch(memory, {
      onOlder: (seen, before) => void told.push(seen.sequence < before.sequence ? 'less' : 'fork'),
    });
    await watch.see(response);
    await watch.save();
  };
  for (let n = 0; n < 3; n++) {
    const open = await s.open();
    await see(await ask(open));
    await see(await ask(open));
    await open.close();
  }
  assert.deepEqual(told, [], 'a start is no other history');
  for (const name of readdirSync(s.data)) s.putBack(older, name);
  const back = await s.open();
  await see(await ask(back));
  assert.deepEqual(told, ['less']);
  // Other clients use it, until it has more transactions than this client ever saw.
  for (let n = 0; n < 12; n++) await ask(back);
  await see(await ask(back));
  await back.close();
  const later = await s.open();
  await see(await ask(later));
  await later.close();
  assert.deepEqual(told, ['less', 'fork', 'fork']);
});

test('while it serves, what is noted is a few seconds old, so that a killed one is compared too', async () => {
  await using s = await shelf();
  const older = s.copy();
  const serving = await serve({ data: s.data, listen: '127.0.0.1:0', logLevel: 'silent' });
  await makeRing(serving.appliance, 'blue', 'served');
  const file = join(s.data, 'kms.witness');
  const noted = (): string => readFileSync(file, 'hex');
  const before = readFileSync(join(older, 'kms.witness'), 'hex');
  await until('it is noted', () => noted() !== before);
  await until('nothing changes, nothing is written', async () => {
    const idle = noted();
    await new Promise((resolve) => setTimeout(resolve, 2500));
    return noted() === idle;
  });
  const killed = s.copy();
  await serving.close();
  for (const name of readdirSync(s.data)) s.putBack(killed, name);
  await (await s.open()).close();
  for (const name of readdirSync(s.data)) s.putBack(killed, name);
  s.putBack(older, s.blue);
  await refused(s, /the tenant blue is older/);
});

test("whatever is wrong with a tenant's files, a start that refuses them changes nothing", async () => {
  await using s = await shelf();
  const dir = join(s.data, s.blue);
  const sound = s.copy();
  const faults: [name: string, plant: (file: string) => void][] = [
    ['a bit in the header', (file) => flip(file, 20)],
    ['a bit in the middle', (file) => flip(file, Math.floor(statSync(file).size / 2))],
    ['a bit near the end', (file) => flip(file, statSync(file).size - 20)],
    ['another kind of file', (file) => writeFileSync(file, 'x'.repeat(700))],
    ['nothing in it', (file) => truncateSync(file, 0)],
    ['a part of its header', (file) => truncateSync(file, 40)],
    ['it is gone', (file) => unlinkSync(file)],
  ];
  let planted = 0;
  for (const name of readdirSync(dir).filter((each) => /^(?:snapshot|log)-/.test(each))) {
    for (const [fault, plant] of faults) {
      plant(join(dir, name));
      await refused(s, new RegExp(`${s.blue}|older`)).catch((error: Error) => {
        throw new Error(`${name}, ${fault}: ${error.message}`, { cause: error });
      });
      planted++;
      s.putBack(sound, s.blue);
    }
  }
  assert.ok(planted >= 14, `${planted} faults`);
  rmSync(dir, { recursive: true });
  await refused(s, /tenants/);
  s.putBack(sound, s.blue);
  await (await s.open()).close();
});

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  writeFileSync(file, bytes);
}

test('an appliance of an earlier release, of which nothing was noted, opens and is noted from then on', async () => {
  await using s = await shelf();
  const fixtures = join(import.meta.dirname, '..', 'compat', 'backup-1');
  const keyFile = join(s.data, '..', 'earlier.key');
  cpSync(join(fixtures, 'master-key.txt'), keyFile);
  chmodSync(keyFile, 0o600);
  for (const from of ['backup.kms-backup', 'shipped']) {
    const data = join(s.data, '..', `earlier-${from}`);
    await restoreAppliance({ from: join(fixtures, from), data, keys: { keyFile, env: () => undefined } });
    assert.ok(!existsSync(join(data, 'kms.witness')));
    for (let n = 0; n < 3; n++) await (await openAppliance({ data, keyFile })).close();
    const appliance = await openAppliance({ data, keyFile });
    await makeRing(appliance, 'default', 'later');
    await appliance.close();
    assert.ok(existsSync(join(data, 'kms.witness')));
  }
});
