// A standby in this process, of an appliance that ships: its answers, the files it fetches and keeps, how it takes
// over, and what the former primary then answers and may still do.
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import { restoreAppliance } from '../../src/backup/restore-command.ts';
import { Standby } from '../../src/backup/standby.ts';
import { socketFetch } from '../../src/cli/local-socket.ts';
import type { KmsError } from '../../src/errors.ts';
import type { ApplianceEvent } from '../../src/platform/events.ts';
import type { ServeOptions } from '../../src/server/config.ts';
import { type Serving, serve, standBy } from '../../src/server/serve.ts';
import { freePort } from '../support/free-port.ts';
import { somePoint } from '../support/tang.ts';
import { until } from '../support/until.ts';

const bases: string[] = [];
after(() => {
  for (const base of bases) rmSync(base, { recursive: true, force: true });
});
const env = (): undefined => undefined;
const quick = { wait: 60_000, fence: true, acceptOlder: false };

interface Place {
  readonly first: string;
  readonly second: string;
  readonly shipped: string;
  readonly key: string;
  readonly apiKey: string;
  serveFirst(more?: Partial<ServeOptions>): Promise<Serving>;
  ask(serving: Pick<Serving, 'url'>, path: string, body?: object): Promise<Response>;
  names(serving: Pick<Serving, 'url'>): Promise<readonly string[]>;
  /** Shipped directory of the first life. */
  life(): string;
  /** Whether its journal has a point. */
  hasArrived(): boolean;
  standby(more?: Partial<ServeOptions>): ReturnType<typeof standBy>;
  /** Opens a standby without a server, and does not start it. */
  offline(keyFile?: string, from?: string): Promise<Standby>;
}

async function place(): Promise<Place> {
  const base = mkdtempSync(join(tmpdir(), 'kms-standby-'));
  bases.push(base);
  const [first, second, shipped] = [join(base, 'first'), join(base, 'second'), join(base, 'shipped')];
  const made = await initAppliance({ data: first, env });
  const common = { listen: '127.0.0.1:0', logLevel: 'silent', sources: { env } };
  const shipping = { shipping: { to: shipped, every: 50, window: 1e9 } };
  // A path where the key is found only if it is named.
  const key = join(base, 'kept.key');
  renameSync(`${first}.master.key`, key);
  const headers = { authorization: `Bearer ${made.apiKey.key}`, 'content-type': 'application/json' };
  const life = (): string => join(shipped, readdirSync(shipped).find((name) => name.endsWith('-1')) ?? '');
  const ask = (serving: Pick<Serving, 'url'>, path: string, body?: object): Promise<Response> =>
    fetch(serving.url + path, { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) });
  return {
    ...{ first, second, shipped, key, apiKey: made.apiKey.key, ask },
    async serveFirst(more = {}) {
      const serving = await serve({ data: first, keyFile: key, ...common, copies: shipping, ...more });
      after(() => serving.close());
      return serving;
    },
    async names(serving) {
      const answer = await (await ask(serving, '/ks/keyrings')).json();
      return answer.data.map(({ name }: { name: string }) => name);
    },
    life,
    hasArrived() {
      const journal = existsSync(shipped) ? join(life(), 'points.kms') : '';
      return existsSync(journal) && readFileSync(journal).includes(0x0a);
    },
    async standby(more = {}) {
      const standing = await standBy({ from: shipped, data: second, keyFile: key, ...common, ...more });
      after(() => standing.close());
      return standing;
    },
    offline: (keyFile = key, from = shipped) => Standby.open({ from, data: second, keys: { keys: { env, keyFile } } }),
  };
}

interface Distance {
  readonly ok: boolean;
  readonly behind: { readonly transactions: number } | null;
  readonly shippedAt: string | null;
  readonly provenAt: string | null;
  readonly epoch: number;
}

type Answer = { status: number; body: Record<string, never> };

async function locally(data: string, method: string, path: string, body?: object): Promise<Answer> {
  const init = body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {};
  const answer = await socketFetch(data)(new Request(`http://kms.local${path}`, { method, ...init }));
  return { status: answer.status, body: (await answer.json()) as Answer['body'] };
}

const promote = (data: string, body: object = { wait: 60_000 }): Promise<Answer> =>
  locally(data, 'POST', '/local/standby/promote', body);
const gone = /^a standby on .+ took over at 2.+Z: this appliance no longer serves$/;

test('a switch-over loses nothing, and never do both serve', async () => {
  const p = await place();
  const first = await p.serveFirst();
  const second = await p.standby({ copies: { shipping: { to: p.shipped, every: 50, window: 1e9 } } });
  for (const name of ['a', 'b']) assert.equal((await p.ask(first, '/ks/keyrings', { name })).status, 200);

  const ready = async (): Promise<{ message: string; standby: Distance }> => {
    const answer = await p.ask(second, '/readyz');
    assert.equal(answer.status, 503);
    return answer.json();
  };
  await until('it has all of it', async () => {
    const { behind, provenAt, shippedAt, ok } = (await ready()).standby;
    return ok && behind?.transactions === 0 && provenAt === shippedAt;
  });
  const { message, standby } = await ready();
  assert.equal(message, 'this is a standby: it serves no client until it takes over');
  assert.equal(standby.epoch, 1);
  assert.ok(!JSON.stringify(standby).includes(p.shipped), 'no paths for everybody');
  assert.equal((await p.ask(second, '/healthz')).status, 200);
  for (const path of ['/ks/keyrings', '/console', '/local/status', '/local/standby/promote', '/nothing']) {
    const answer = await p.ask(second, path);
    assert.deepEqual([answer.status, (await answer.json()).message], [503, message], path);
  }
  assert.match(await (await p.ask(second, '/metrics')).text(), /^kms_standby_ok 1$/m);
  const status = await locally(p.second, 'GET', '/local/status');
  assert.equal(Object(status.body.standby).from, p.shipped);
  assert.deepEqual([status.body.sealed, Object(status.body.standby).hasKey], [true, true]);
  for (const body of [{ wait: -1 }, { fence: 'no' }, { other: 1 }, []]) {
    assert.equal((await promote(p.second, body)).status, 400, JSON.stringify(body));
  }

  // A client writes all the while; everything acknowledged is there afterwards.
  const answered: string[] = [];
  let over = false;
  let both = 0;
  const writer = (async () => {
    for (let n = 0; !over; n++) {
      const name = `w${n}`;
      const [one, other] = await Promise.all([
        p.ask(first, '/ks/keyrings', { name }),
        p.ask(second, '/ks/keyrings', { name: `${name}-second` }),
      ]);
      if (one.status === 200) answered.push(name);
      if (one.status === 200 && other.status === 200) both++;
      await delay(5);
    }
  })();
  await until('some is answered', () => answered.length > 10);
  const taken = await promote(p.second);
  over = true;
  await writer;
  assert.equal(taken.status, 200, JSON.stringify(taken.body));
  assert.equal(taken.body.isComplete, true);
  assert.equal(both, 0);
  const names = await p.names(await second.tookOver);
  for (const name of ['a', 'b', ...answered]) assert.ok(names.includes(name), `${name} was answered and is missing`);
  assert.equal((await p.ask(second, '/readyz')).status, 200);
  assert.equal((await (await p.ask(second, '/readyz')).json()).epoch, taken.body.epoch);

  // The former primary reports it on every path, and keeps running.
  for (const path of ['/readyz', '/ks/keyrings', '/console', '/system/seal-status', '/local/status']) {
    const answer = await p.ask(first, path);
    assert.equal(answer.status, 503, path);
    assert.match((await answer.json()).message, gone);
  }
  assert.equal((await p.ask(first, '/healthz')).status, 200);
  assert.equal((await locally(p.first, 'GET', '/local/status')).status, 503);
  assert.equal((await locally(p.first, 'POST', '/system/unseal', { retry: true })).status, 503);
  await first.close();
  // It does not start again either, with or without its shipping directory.
  await assert.rejects(p.serveFirst(), { code: 'refused', message: gone });
  await assert.rejects(p.serveFirst({ copies: {} }), { code: 'refused', message: gone });
  await assert.rejects(openAppliance({ data: p.first, keyFile: p.key, sources: { env } }), {
    code: 'refused',
    message: gone,
  });

  // A second promotion, or becoming a standby again, is refused. Its files as a standby are gone.
  const twice = await promote(p.second);
  assert.deepEqual([twice.status, /not a standby/.test(String(twice.body.message))], [400, true]);
  await second.close();
  await assert.rejects(p.offline(), { code: 'refused', message: /holds an appliance, not a standby/ });
  assert.ok(!existsSync(join(p.second, 'standby')), 'the copies are gone');
  // Started again in the same way, as a service would be, it serves at once.
  const rebooted = await p.standby();
  assert.equal((await p.ask(await rebooted.tookOver, '/readyz')).status, 200);
  await rebooted.close();

  // Once the first is taken back on purpose, the other one stops in its turn, and the log says who did it.
  const third = await serve({
    data: p.second,
    listen: '127.0.0.1:0',
    logLevel: 'silent',
    keyFile: p.key,
    sources: { env },
    copies: { shipping: { to: p.shipped, every: 50, window: 1e9 } },
  });
  after(() => third.close());
  assert.equal((await p.ask(third, '/readyz')).status, 200);
  const back = await p.serveFirst({ takeBack: true });
  assert.ok((await (await p.ask(back, '/readyz')).json()).epoch > Number(taken.body.epoch));
  await until('the other stops', async () => (await p.ask(third, '/readyz')).status === 503);
  assert.match((await (await p.ask(third, '/ks/keyrings')).json()).message, gone);
  const found = await (await p.ask(back, '/auth/search/activity', { action: 'system.take-back' })).json();
  assert.equal(found.data.length, 1);
  await back.close();
  await third.close();
  const again = await p.serveFirst();
  assert.equal((await p.ask(again, '/readyz')).status, 200, 'once is enough');
  await again.close();
});

test('the one that ships is dead: what arrived is taken, and when it comes back it refuses', async () => {
  const p = await place();
  const first = await p.serveFirst();
  assert.equal((await p.ask(first, '/ks/keyrings', { name: 'kept' })).status, 200);
  await first.close();
  const standby = await p.offline();
  await assert.rejects(Standby.open({ data: p.second, keys: { keys: { env } } }), { code: 'in-use' });
  const taken = await standby.takeOver({ ...quick, wait: 200 });
  assert.equal(taken.isComplete, false);
  // Refused before it serves: the last shipping directory is remembered.
  await assert.rejects(openAppliance({ data: p.first, keyFile: p.key, sources: { env } }), {
    ...{ code: 'refused', message: gone },
  });
  rmSync(join(p.first, 'kms.fenced'));
  assert.ok(taken.transactions > 0 && taken.epoch > 1 && Object.keys(taken.heads).length === 2);
  await standby.close();
  await assert.rejects(p.serveFirst(), { code: 'refused', message: gone });
  assert.ok(existsSync(join(p.first, 'kms.fenced')));
  // The mark remains if the shipping directory is now unreachable.
  renameSync(p.shipped, `${p.shipped}-away`);
  await assert.rejects(p.serveFirst(), { code: 'refused', message: gone });
  // The mark's content does not matter.
  writeFileSync(join(p.first, 'kms.fenced'), 'xxxx');
  await assert.rejects(p.serveFirst(), {
    code: 'refused',
    message: /^a standby took over: this appliance no longer serves/,
  });
  const events: ApplianceEvent[] = [];
  const open = {
    data: p.first,
    keyFile: p.key,
    sources: { env },
    onEvent: (event: ApplianceEvent) => void events.push(event),
  };
  await (await openAppliance({ ...open, takeBack: true })).close();
  await (await openAppliance({ ...open, takeBack: true })).close();
  assert.ok(events.some(({ message }) => message.startsWith('--take-back has no effect')));
});

test('without the master key it follows, says so, and takes over once it gets the key', async () => {
  const p = await place();
  const first = await p.serveFirst();
  const second = await p.standby({ keyFile: undefined });
  await p.ask(first, '/ks/keyrings', { name: 'one' });
  await until('it has all of it', async () => {
    const { behind, shippedAt } = (await (await p.ask(second, '/readyz')).json()).standby;
    return behind?.transactions === 0 && shippedAt !== null;
  });
  const { standby } = (await locally(p.second, 'GET', '/local/status')).body;
  assert.deepEqual([Object(standby).hasKey, Object(standby).proven], [false, null]);
  const refused = await promote(p.second);
  assert.equal(refused.status, 503);
  assert.match(String(refused.body.message), /sealed|master key/);
  assert.ok(!existsSync(join(p.life(), 'kms.fence')), 'nobody was stopped for it');
  assert.equal((await p.ask(first, '/readyz')).status, 200);
  await second.close();
  const other = join(p.second, '..', 'other');
  await initAppliance({ data: other, env });
  const wrong = await p.offline(`${other}.master.key`);
  await assert.rejects(wrong.takeOver(quick), { code: 'refused', message: /wrong master key file: needs .+, got / });
  await wrong.close();
  assert.ok(!existsSync(join(p.life(), 'kms.fence')));
  const right = await p.offline();
  assert.equal((await right.takeOver(quick)).isComplete, true);
  assert.ok(existsSync(`${p.second}.master.key`));
});

test('clients of Tang are told nothing by a standby, and recover once it took over', async () => {
  const p = await place();
  const first = await p.serveFirst({ tangListen: '127.0.0.1:0' });
  const tangListen = `127.0.0.1:${await freePort()}`;
  const second = await p.standby({ tangListen });
  assert.equal((await fetch(`${first.tangAddress}/adv`)).status, 200);
  const { pairs } = await (await p.ask(first, '/tang/pairs')).json();
  await until('it has all of it', async () => {
    const { behind, provenAt, shippedAt } = (await (await p.ask(second, '/readyz')).json()).standby;
    return behind?.transactions === 0 && provenAt === shippedAt;
  });
  for (const path of ['/adv', '/healthz', '/metrics', '/readyz', '/local/status']) {
    const answer = await fetch(`http://${tangListen}${path}`);
    assert.deepEqual([answer.status, Object.keys(await answer.json())], [503, ['message']], path);
  }
  const recover = async (base: string) => {
    const answer = await fetch(`${base}/rec/${pairs[0].exchange}`, { method: 'POST', body: JSON.stringify(somePoint) });
    return [answer.status, await answer.json()] as const;
  };
  const [status, before] = await recover(first.tangAddress ?? '');
  assert.equal(status, 200);
  assert.equal((await promote(p.second)).status, 200);
  assert.equal((await second.tookOver).tangAddress, `http://${tangListen}`);
  assert.deepEqual(await recover(`http://${tangListen}`), [200, before]);
  assert.equal((await recover(first.tangAddress ?? ''))[0], 503, 'the one before is fenced off');
});

/** Changes one byte of the shipped log of the tenant, near its end. */
function damage(life: string): string {
  const [tenant = ''] = readdirSync(join(life, 'tenants'));
  const dir = join(life, 'tenants', tenant);
  const name =
    readdirSync(dir)
      .filter((each) => each.startsWith('log-'))
      .sort()
      .at(-1) ?? '';
  const bytes = readFileSync(join(dir, name));
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 30) ^ 1, bytes.length - 30);
  writeFileSync(join(dir, name), bytes);
  return join(dir, name);
}

test('what is damaged replaces nothing good, and stops nobody', async () => {
  const p = await place();
  const first = await p.serveFirst();
  await p.ask(first, '/ks/keyrings', { name: 'one' });
  await first.close();
  const standing = await p.standby();
  const ready = async () => (await (await p.ask(standing, '/readyz')).json()).standby;
  await until('it is proven', async () => (await ready()).provenAt === (await ready()).shippedAt && (await ready()).ok);
  const good = (await ready()).provenAt;
  await standing.close();
  const again = await p.serveFirst();
  await p.ask(again, '/ks/keyrings', { name: 'two' });
  await again.close();
  damage(p.life());
  const next = await p.standby();
  const found = async () => Object((await locally(p.second, 'GET', '/local/status')).body.standby);
  await until('it is found', async () => /log-[0-9]+\.kms/.test((await found()).problem));
  const standby = await found();
  assert.equal(Object(standby).proven.at, good);
  const refused = await promote(p.second, { wait: 100 });
  assert.equal(refused.status, 400);
  assert.match(String(refused.body.message), /log-[0-9]+\.kms.*--accept-older/);
  assert.ok(!existsSync(join(p.life(), 'kms.fence')));
  const taken = await promote(p.second, { wait: 100, acceptOlder: true });
  assert.equal(taken.status, 200, JSON.stringify(taken.body));
  assert.equal(taken.body.madeAt, good);
  assert.deepEqual(await p.names(next), ['one']);
  await assert.rejects(p.serveFirst(), { code: 'refused', message: gone });
});

test('an older shipment is not taken', async () => {
  const p = await place();
  const first = await p.serveFirst();
  await p.ask(first, '/ks/keyrings', { name: 'one' });
  await first.close();
  cpSync(p.shipped, `${p.shipped}-older`, { recursive: true });
  const again = await p.serveFirst();
  await p.ask(again, '/ks/keyrings', { name: 'two' });
  await again.close();
  const standing = await p.standby();
  const ready = async () => (await (await p.ask(standing, '/readyz')).json()).standby;
  await until('it is proven', async () => (await ready()).ok && (await ready()).provenAt === (await ready()).shippedAt);
  renameSync(p.shipped, `${p.shipped}-newer`);
  renameSync(`${p.shipped}-older`, p.shipped);
  await until('it is found', async () => (await ready()).ok === false);
  const { standby } = (await locally(p.second, 'GET', '/local/status')).body;
  assert.match(String(Object(standby).problem), /the state shipped there is older than the one that had arrived by/);
  const refused = await promote(p.second, { wait: 100 });
  assert.match(String(refused.body.message), /is older than the one that had arrived/);
  // The shipping directory is lost: it takes over with its local copy, and the former primary is not told.
  rmSync(p.shipped, { recursive: true });
  assert.match(String((await promote(p.second, { wait: 100 })).body.message), /--unfenced/);
  const taken = await promote(p.second, { fence: false });
  assert.deepEqual([taken.status, taken.body.isComplete], [200, false], JSON.stringify(taken.body));
  assert.deepEqual(await p.names(standing), ['one', 'two']);
});

test('a fence that somebody without the keys made stops no server, and is looked at by a person before a start', async () => {
  const p = await place();
  const first = await p.serveFirst();
  await until('something arrived', p.hasArrived);
  const forged = { by: 'ab'.repeat(16), host: 'evil', at: 1, epoch: 2, keyEpoch: 1 };
  writeFileSync(join(p.life(), 'forged'), `${JSON.stringify(forged)}\t${'0'.repeat(64)}\n`);
  renameSync(join(p.life(), 'forged'), join(p.life(), 'kms.fence'));
  await delay(1500);
  assert.equal((await p.ask(first, '/readyz')).status, 200);
  await first.close();
  await assert.rejects(p.serveFirst(), { code: 'corrupt', message: /kms\.fence does not verify$/ });
  rmSync(join(p.life(), 'kms.fence'));
  await (await p.serveFirst()).close();
});

/** Serves the standby that took over, which ships to the same directory. */
async function served(p: Place): Promise<{ serving: Serving; epoch: number }> {
  const serving = await p.serveFirst({ data: p.second });
  return { serving, epoch: (await (await p.ask(serving, '/readyz')).json()).epoch };
}

test('one of two standbys takes over, and the other refuses', async () => {
  const p = await place();
  await (await p.serveFirst()).close();
  const one = await p.offline();
  await one.takeOver({ ...quick, wait: 0 });
  const other = await Standby.open({
    from: p.shipped,
    data: `${p.second}-too`,
    keys: { keys: { env, keyFile: p.key } },
  });
  await assert.rejects(other.takeOver({ ...quick, wait: 0 }), { code: 'refused', message: /^another standby, on / });
  // It follows the new primary as soon as that ships there.
  other.start();
  const { serving, epoch } = await served(p);
  await until('it follows the new life', () => {
    const standby = other.status();
    return standby.epoch === epoch && standby.proven !== null && standby.problem === undefined;
  });
  await p.ask(serving, '/ks/keyrings', { name: 'later' });
  await serving.close();
  await until('it has the last of it', () => {
    const standby = other.status();
    return standby.behind?.transactions === 0 && standby.proven?.at === standby.shipped?.at;
  });
  const copies = (): string => readdirSync(join(`${p.second}-too`, 'standby')).join();
  await until('the copy of the former life is gone', () => copies() === `${other.status().appliance}-${epoch}`);
  assert.equal((await other.takeOver({ ...quick, wait: 0 })).epoch > epoch, true);
  await other.close();
});

test('directories that are none of a standby, or none to follow', async () => {
  const p = await place();
  const first = await p.serveFirst();
  await until('something arrived', p.hasArrived);
  const open = (from: string | undefined, data: string) =>
    Standby.open({ from, data, keys: { keys: { env, keyFile: p.key } } });
  await assert.rejects(open(p.first, p.second), { code: 'refused', message: /is a data directory, not shipped to$/ });
  await assert.rejects(open(p.shipped, p.first), { code: 'refused', message: /holds an appliance, not a standby/ });
  await assert.rejects(open(undefined, p.second), { code: 'refused', message: /is not the directory of a standby$/ });
  await assert.rejects(open(p.shipped, p.shipped), { code: 'refused', message: /is not empty; nothing was changed$/ });
  assert.ok(!existsSync(p.second));
  const standing = await p.standby();
  await until('it follows', () => existsSync(join(p.second, 'standby')));
  for (const from of [
    p.second,
    join(p.second, 'standby'),
    join(p.second, 'standby', readdirSync(p.shipped)[0] ?? ''),
  ]) {
    await assert.rejects(open(from, `${p.second}-too`), {
      code: 'refused',
      message: /is a standby's, not shipped to$/,
    });
  }
  await standing.close();
  const refused = { code: 'refused', message: /is the directory of a standby, which serves no client yet$/ };
  await assert.rejects(serve({ data: p.second, listen: '127.0.0.1:0', logLevel: 'silent' }), refused);
  await assert.rejects(initAppliance({ data: p.second, env }), refused);
  await assert.rejects(openAppliance({ data: p.second, sources: { env } }), refused);
  const into = { from: p.shipped, data: p.second, keys: { keyFile: p.key, env } };
  await assert.rejects(restoreAppliance(into), { code: 'refused', message: /is not empty/ });
  writeFileSync(join(p.second, 'kms.standby'), 'torn');
  await assert.rejects(open(p.shipped, p.second), (error: KmsError) => error.code === 'corrupt' && !!error.hint);
  await first.close();
});

test('what has not shown yet is waited for, and is not called complete', async () => {
  const p = await place();
  const first = await p.serveFirst();
  await p.ask(first, '/ks/keyrings', { name: 'one' });
  const journal = () => join(p.life(), 'points.kms');
  await until('it arrived', p.hasArrived);
  const standby = await p.offline();
  // Simulates a network file system that shows the stop mark already, and not yet the end of the journal.
  let whole = Buffer.alloc(0);
  const hiding = (async () => {
    await until('it stopped', () => existsSync(join(p.life(), 'kms.fence.stopped')));
    whole = readFileSync(journal());
    // In one step: no file system would show a partly written journal here.
    const show = (bytes: Buffer): void => {
      writeFileSync(`${journal()}.tmp`, bytes);
      renameSync(`${journal()}.tmp`, journal());
    };
    show(whole.subarray(0, whole.lastIndexOf(10, whole.length - 2) + 1));
    await delay(1500);
    show(whole);
  })();
  const write = (async () => {
    for (let n = 0; (await p.ask(first, '/ks/keyrings', { name: `n${n}` })).status === 200; n++) await delay(20);
  })();
  const taken = await standby.takeOver(quick);
  await Promise.all([hiding, write]);
  assert.ok(whole.length > 0);
  assert.equal(taken.isComplete, true);
  await first.close();
});

/** A trial restore, beside it, of a copy of the current first life. */
async function trial(p: Place): Promise<string> {
  const data = `${p.first}-trial`;
  cpSync(p.shipped, `${p.shipped}-copy`, { recursive: true });
  await restoreAppliance({ from: `${p.shipped}-copy`, data, keys: { keyFile: p.key, env } });
  return data;
}

test('a trial of a restored copy that ships to the same place takes nothing over', async () => {
  const p = await place();
  const first = await p.serveFirst();
  await p.ask(first, '/ks/keyrings', { name: 'before' });
  await first.close();
  const tried = await p.serveFirst({ data: await trial(p) });
  const laterEpoch = (await (await p.ask(tried, '/readyz')).json()).epoch;
  const isThere = (end: string) =>
    readdirSync(p.shipped).some((name) => name.endsWith(end) && existsSync(join(p.shipped, name, 'points.kms')));
  await until('the trial shipped', () => isThere(`-${laterEpoch}`));
  const again = await p.serveFirst();
  const journal = () => statSync(join(p.life(), 'points.kms')).size;
  const before = journal();
  await p.ask(again, '/ks/keyrings', { name: 'after' });
  await until('it ships on', () => journal() > before);
  const copies = async () => Object((await locally(p.first, 'GET', '/local/status')).body.copies).shipping;
  await until('the first one says so', async () => (await copies()).laterEpoch === laterEpoch);
  assert.match((await copies()).error, /^a later life of this appliance \(epoch \d+\) ships to the same directory/);
  assert.equal((await (await p.ask(again, '/readyz')).json()).shipping.ok, false);
  const life = p.life();

  const standing = await p.standby();
  const status = async () => Object((await locally(p.second, 'GET', '/local/status')).body.standby);
  await until('the standby says so', async () => /^an earlier life of the appliance/.test((await status()).problem));
  assert.equal((await (await p.ask(standing, '/readyz')).json()).standby.ok, false);
  assert.equal((await status()).epoch, laterEpoch, 'it follows the later one all the same');
  const refused = await promote(p.second);
  assert.equal(refused.status, 400);
  assert.ok(String(refused.body.message).includes(`--from ${life}`), String(refused.body.message));
  assert.equal((await p.ask(again, '/readyz')).status, 200, 'nobody was stopped for it');
  const into = { data: `${p.second}-restored`, keys: { keyFile: p.key, env } };
  await assert.rejects(
    restoreAppliance({ ...into, from: p.shipped }),
    (error: KmsError) => error.code === 'refused' && error.hint?.includes(`kms restore ${life}`) === true,
  );
  await standing.close();

  const named = await p.offline(p.key, life);
  const taken = await named.takeOver(quick);
  assert.equal(taken.isComplete, true);
  assert.ok(taken.epoch > laterEpoch);
  await until('the trial stops too', async () => (await p.ask(tried, '/readyz')).status === 503);
  assert.equal((await p.ask(again, '/ks/keyrings', { name: 'late' })).status, 503);
  const { serving } = await served(p);
  assert.deepEqual((await p.names(serving)).toSorted(), ['after', 'before']);
  assert.equal((await (await p.ask(serving, '/readyz')).json()).shipping.ok, true);
  await restoreAppliance({ ...into, from: p.shipped });
});

test('a later life that is named takes over, and the earlier one stops', async () => {
  const p = await place();
  const first = await p.serveFirst();
  await until('something arrived', p.hasArrived);
  const tried = await p.serveFirst({ data: await trial(p) });
  const { epoch } = await (await p.ask(tried, '/readyz')).json();
  const later = (): string => readdirSync(p.shipped).find((name) => name.endsWith(`-${epoch}`)) ?? '';
  await until('the trial shipped', () => existsSync(join(p.shipped, later() || '-', 'points.kms')));
  await p.ask(first, '/ks/keyrings', { name: 'lost' });
  await tried.close();
  const standby = await p.offline(p.key, join(p.shipped, later()));
  await standby.takeOver({ ...quick, wait: 100 });
  await until('the first one stops', async () => (await p.ask(first, '/ks/keyrings', { name: 'x' })).status === 503);
});

test('after a disaster the standby follows the restored copy, and is promoted without a word', async () => {
  const p = await place();
  const first = await p.serveFirst();
  await p.ask(first, '/ks/keyrings', { name: 'before' });
  await first.close();
  const standing = await p.standby();
  const ready = async () => (await (await p.ask(standing, '/readyz')).json()).standby;
  await until('it follows the first', async () => (await ready()).ok && (await ready()).epoch === 1);
  const data = `${p.first}-restored`;
  await restoreAppliance({ from: p.shipped, data, keys: { keyFile: p.key, env } });
  const restored = await p.serveFirst({ data });
  const { epoch } = await (await p.ask(restored, '/readyz')).json();
  await p.ask(restored, '/ks/keyrings', { name: 'after' });
  await until('it follows the copy', async () => {
    const { ok, behind, epoch: followed, provenAt, shippedAt } = await ready();
    return ok && followed === epoch && behind?.transactions === 0 && provenAt === shippedAt;
  });
  const taken = await promote(p.second);
  assert.deepEqual([taken.status, taken.body.isComplete], [200, true], JSON.stringify(taken.body));
  assert.deepEqual((await p.names(await standing.tookOver)).toSorted(), ['after', 'before']);
  await assert.rejects(p.serveFirst(), { code: 'refused', message: gone });
});

test('a standby without room for a second copy does not stop the one that serves', async () => {
  const p = await place();
  const first = await p.serveFirst();
  assert.equal((await p.ask(first, '/ks/keyrings', { name: 'a' })).status, 200);
  await until('it has shipped', p.hasArrived);
  let free = 1e12;
  const standby = await Standby.open({
    ...{ from: p.shipped, data: p.second, keys: { keys: { env, keyFile: p.key } } },
    free: async () => free,
  });
  await standby.catchUp();
  free = 1000;
  const refused = { code: 'refused', message: /iB are to be restored, and 1000 bytes are free there$/ };
  await assert.rejects(standby.takeOver({ wait: 200, fence: true, acceptOlder: false }), refused);
  assert.ok(!readdirSync(p.life()).includes('kms.fence'), 'no fence was raised');
  assert.deepEqual(await p.names(first), ['a']);
  free = 1e12;
  assert.equal((await standby.takeOver({ wait: 60_000, fence: true, acceptOlder: false })).isComplete, true);
  assert.equal((await p.ask(first, '/readyz')).status, 503);
});
