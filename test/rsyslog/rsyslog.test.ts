// Activity to a real rsyslog, over TCP and, with the documented configuration, over TLS: every record arrives as
// exported, its fields are parsed, also across a restart of rsyslog.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { certificate, privateKey } from '../support/localhost-certificate.ts';
import { prng } from '../support/prng.ts';
import { checkReceived, streamedAppliance, streamingTo } from '../support/streamed-appliance.ts';
import { until } from '../support/until.ts';

const program = process.env.KMS_RSYSLOGD || '/usr/sbin/rsyslogd';
const page = readFileSync(new URL('../../docs/activity-streaming.md', import.meta.url), 'utf8');
const base = mkdtempSync(join(tmpdir(), 'kms-rsyslog-'));
const running = new Set<ChildProcess>();
after(() => {
  for (const each of running) each.kill('SIGKILL');
  rmSync(base, { recursive: true, force: true });
});

const fields =
  '%syslogfacility-text%|%syslogseverity-text%|%timestamp:::date-rfc3339%|%app-name%|%msgid%|%structured-data%';

class Rsyslog {
  readonly #dir: string;
  readonly #child: ChildProcess;
  #said = '';
  port = 0;

  private constructor(dir: string, child: ChildProcess) {
    this.#dir = dir;
    this.#child = child;
    child.stderr?.on('data', (text) => {
      this.#said += text;
    });
  }

  /** Starts one that writes the JSON of each message to one file, and the parsed header to another. */
  static async start(dir: string, tls: boolean, port = 0): Promise<Rsyslog> {
    const portFile = join(dir, 'port');
    rmSync(portFile, { force: true });
    const [json, understood] = [join(dir, 'json'), join(dir, 'fields')];
    const actions = `
      template(name="json" type="string" string="%msg%\\n")
      template(name="fields" type="string" string="${fields}\\n")
      ruleset(name="kms") {
        action(type="omfile" file="${json}" template="json")
        action(type="omfile" file="${understood}" template="fields")
      }`;
    const [, documented = ''] = /For rsyslog:\n\n```text\n([\s\S]+?)```/.exec(page) ?? [];
    const plain = `
      module(load="imtcp" maxFrameSize="300000")
      global(maxMessageSize="300k")
      input(type="imtcp" port="6514" ruleset="kms")`;
    const given = tls ? documented.replace(/^ruleset\(.*$/m, '').replaceAll('/etc/ssl/kms/', `${dir}/`) : plain;
    const listening = given.replace('port="6514"', `port="${port}" listenPortFileName="${portFile}"`);
    assert.notEqual(listening, given);
    for (const [name, text] of [
      ['ca.pem', certificate],
      ['cert.pem', certificate],
      ['key.pem', privateKey],
      ['conf', `global(workDirectory="${dir}")\n${actions}\n${listening}\n`],
    ] as const) {
      writeFileSync(join(dir, name), text, { mode: 0o600 });
    }
    const child = spawn(program, ['-n', '-f', join(dir, 'conf'), '-i', join(dir, 'pid')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    running.add(child);
    child.on('exit', () => running.delete(child));
    const self = new Rsyslog(dir, child);
    const portOf = (): number => port || (existsSync(portFile) ? Number(readFileSync(portFile, 'utf8')) : 0);
    await until('rsyslog listens', async () => child.exitCode !== null || (await answers(portOf())));
    assert.equal(child.exitCode, null, self.#said);
    self.port = portOf();
    return self;
  }

  /** Stops it as a service is stopped: it writes out its queue. */
  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }

  lines(name: 'json' | 'fields'): string[] {
    const file = join(this.#dir, name);
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into records of every shape
  records(): any[] {
    return this.lines('json').map((line) => JSON.parse(line));
  }
}

async function answers(port: number): Promise<boolean> {
  if (port === 0) return false;
  const socket = connect(port, '127.0.0.1');
  const answered = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return answered;
}

function hasTls(): boolean {
  const libraries = ['/usr/lib', '/usr/lib64'].filter(existsSync);
  const places = libraries.flatMap((dir) => [dir, ...readdirSync(dir).map((name) => join(dir, name))]);
  return places.some((dir) => existsSync(join(dir, 'rsyslog', 'lmnsd_gtls.so')));
}

const ways = [false, true].filter((tls) => !tls || hasTls());
if (ways.length < 2) {
  process.stderr.write('kms: this rsyslog has no TLS (Debian: rsyslog-gnutls): the tests with it are not run\n');
}

for (const tls of ways) {
  const way = tls ? 'TLS' : 'TCP';
  const targetOf = ({ port }: Rsyslog): string => `syslog+${tls ? 'tls' : 'tcp'}://localhost:${port}`;

  test(`over ${way} rsyslog understands every field, and has every record as it is exported`, async () => {
    const rsyslog = await Rsyslog.start(mkdtempSync(join(base, 'a-')), tls);
    await using at = await streamedAppliance();
    await at.open(streamingTo([targetOf(rsyslog)], { ca: certificate, from: 'start' }));
    await at.act(3);
    const props = { text: 'quo"te \\ ]\n\u2028ü🔑', long: 'ü'.repeat(60_000) };
    const activity = { keyid: 'x', action: 'own "ac]tion\n', props, valid: false };
    assert.equal((await at.local('POST', '/auth/validate', { key: at.apiKey, activity })).status, 200);
    const log = await at.log();
    await until('all have arrived', async () => (await at.status()).lagRecords === 0);
    await at.close();
    await rsyslog.stop();
    const received = rsyslog.records().slice(0, log.length);
    assert.deepEqual(
      received.map(({ tenant: _, tenantId: __, ...record }) => record),
      log,
    );
    const understood = rsyslog.lines('fields').slice(0, log.length);
    for (const [index, line] of understood.entries()) {
      const { seq, id, hash, createdAt, action, validAction } = log[index];
      const shown = action.replace('\n', ' ').replace(/["\]]/g, '\\$&');
      assert.equal(
        line,
        [
          'audit',
          validAction ? 'info' : 'warning',
          new Date(createdAt).toISOString(),
          'kms',
          'activity',
          `[kms@32473 tenant="default" seq="${seq}" action="${shown}" ` +
            `verdict="${validAction ? 'granted' : 'denied'}" id="${id}" hash="${hash}"]`,
        ].join('|'),
      );
    }
    assert.deepEqual(at.events, [], 'it never had to be tried again');
    assert.ok(log.some(({ props: { long } = { long: '' } }) => long?.length === 60_000));
  });

  test(`over ${way} an rsyslog that is ended and started again misses nothing`, async (context) => {
    const dir = mkdtempSync(join(base, 'b-'));
    let rsyslog = await Rsyslog.start(dir, tls);
    await using at = await streamedAppliance();
    await at.open(streamingTo([targetOf(rsyslog)], { ca: certificate, from: 'start' }));
    const random = prng(11);
    let acting = true;
    const actor = (async () => {
      while (acting) await at.act(1);
    })();
    actor.catch(() => {});
    for (let round = 0; round < 4; round++) {
      await delay(200 + random.int(400));
      const { port } = rsyslog;
      await rsyslog.stop();
      rsyslog = await Rsyslog.start(dir, tls, port);
    }
    acting = false;
    await actor;
    const log = await at.log();
    await until('all have arrived', async () => (await at.status()).lagRecords === 0);
    await at.close();
    await rsyslog.stop();
    const received = rsyslog.records().filter(({ seq }) => seq <= log.length);
    checkReceived(received, log, 1);
    context.diagnostic(`${log.length} records, ${received.length - log.length} again`);
  });
}

if (hasTls()) {
  test('over TLS an rsyslog that nobody vouches for gets nothing', async () => {
    const rsyslog = await Rsyslog.start(mkdtempSync(join(base, 'c-')), true);
    await using at = await streamedAppliance();
    await at.open(streamingTo([`syslog+tls://localhost:${rsyslog.port}`], { from: 'start' }));
    await at.act(2);
    await until('it fails', async () => (await at.status()).fault === 'certificate');
    await at.close();
    await rsyslog.stop();
    assert.deepEqual(rsyslog.lines('json'), []);
  });
}
