// `kms serve --activity-to` as typed: options refused before anything is made, the sources of options, and the output
// of `kms status`.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { SyslogServer } from '../support/syslog-server.ts';
import { until } from '../support/until.ts';
import { desk } from './kms.ts';
import { serving } from './serving.ts';

test('what makes no sense is refused before anything is made', async () => {
  await using d = await desk();
  await writeFile(d.path('secret'), 'hunter2hunter2hunter2hunter2\n', { mode: 0o600 });
  const cases: readonly (readonly [line: string, message: RegExp])[] = [
    ['--activity-to syslog+udp://h:514', /^kms: --activity-to: expected syslog\+tcp:.*, got syslog\+udp:\/\/; see/],
    ['--activity-to syslog+tls://h', /--activity-to: expected syslog\+tls:\/\/host:port/],
    ['--activity-to http://hooks.example/', /plain http is for this machine alone/],
    ['--activity-to https://me:hunter2@hooks.example/', /a user or a password has no place in it/],
    ['--activity-to https://hooks.example/', /--activity-webhook-secret-file is missing/],
    ['--activity-to https://hooks.example/ --activity-webhook-secret-file secret', /expected whsec_ .*openssl rand/],
    ['--activity-to https://hooks.example/ --activity-webhook-secret-file none', /cannot read the webhook secret from/],
    ['--activity-to logs --activity-to ./logs/', /logs is given twice/],
    ['--activity-to kms-data/logs', /the data directory is for the appliance alone/],
    ['--ship-to kms-data', /--ship-to: the data directory is for the appliance alone/],
    ['--ship-to .', /--ship-to: .* holds the data directory: name another one/],
    ['--backup-to .', /--backup-to: .* holds the data directory/],
    ['--activity-to ..', /--activity-to: .* holds the data directory/],
    ['--activity-to secret', /--activity-to: expected a directory, but .*secret is not one/],
    ['--activity-to secret/logs', /--activity-to: expected a directory, but .*secret.logs is not one/],
    ['--backup-to secret', /--backup-to: expected a directory/],
    ['--ship-to secret', /--ship-to: expected a directory/],
    ['--activity-to logs --activity-from middle', /--activity-from: expected end or start, got "middle"/],
    ['--activity-to logs --activity-ca-file none.pem', /cannot read certificates from/],
    ['--activity-from start', /--activity-from goes with --activity-to/],
    ['--activity-ca-file ca.pem', /--activity-ca-file goes with --activity-to/],
    ['--activity-webhook-secret-file secret', /--activity-webhook-secret-file goes with --activity-to/],
  ];
  for (const [line, message] of cases) {
    const { code, stdout, stderr } = await d.kms(`serve --listen 127.0.0.1:0 ${line}`);
    assert.ok(code === 2 || /cannot read/.test(stderr), `${line}: ${code}`);
    assert.equal(stdout, '');
    assert.match(stderr, message, line);
    assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
    assert.ok(!stderr.includes('hunter2'), stderr);
  }
  assert.ok(!existsSync(d.path('kms-data')));
});

test('nothing is written into the data directory, whatever it is called', async () => {
  await using d = await desk();
  await d.json('init --json');
  await symlink(d.path('kms-data'), d.path('linked'));
  const before = readdirSync(d.path('kms-data'), { recursive: true });
  for (const option of ['--activity-to', '--backup-to', '--ship-to']) {
    for (const path of ['linked', 'linked/copies', 'linked/copies/here', 'kms-data/default']) {
      const { code, stderr } = await d.kms(`serve --listen 127.0.0.1:0 ${option} ${path}`);
      assert.equal(code, 2, stderr);
      assert.match(stderr, new RegExp(`^kms: ${option}: the data directory is for the appliance alone`));
    }
  }
  assert.deepEqual(readdirSync(d.path('kms-data'), { recursive: true }), before);
});

test('several targets, typed or from the environment; status shows how far each is', async (context) => {
  await using d = await desk();
  const server = await SyslogServer.listen();
  const { port } = server;
  context.after(() => server.kill());
  await d.json('init --json');
  const env = { KMS_ACTIVITY_TO: `streamed,syslog+tcp://127.0.0.1:${port}`, KMS_ACTIVITY_FROM: 'start' };
  const one = await serving(d, [], env);
  context.after(() => one.stop());
  await d.json('keyring create payroll --private-key-out key --json');
  const file = (): string => {
    const dir = d.path('streamed', 'default');
    const [name] = existsSync(dir) ? readdirSync(dir) : [];
    return name === undefined ? '' : readFileSync(d.path('streamed', 'default', name), 'utf8');
  };
  await until('it is there', () => file().includes('"keyring.create"'));
  await until('and there', () => server.messages.some((message) => message.includes('action="keyring.create"')));
  await server.kill();
  await d.json('keyring list --json');
  const shown = async (): Promise<string> => (await d.kms('status')).stdout;
  const behind = new RegExp(
    `^activity to \\(2\\) +syslog\\+tcp://127\\.0\\.0\\.1:${port}: \\d+ records behind, for \\d+ s; `,
    'm',
  );
  await until('status shows it', async () => behind.test(await shown()));
  assert.match(await shown(), new RegExp(`^activity to \\(1\\) +${d.path('streamed')}: `, 'm'));
  const status = await d.json<{ activityTo: { kind: string; to: string }[] }>('status --json');
  assert.deepEqual(
    status.activityTo.map(({ kind, to }) => [kind, to]),
    [
      ['directory', d.path('streamed')],
      ['syslog', `syslog+tcp://127.0.0.1:${port}`],
    ],
  );
  const { code } = await d.kms('doctor');
  assert.equal(code, 1);
  assert.equal((await one.stop()).code, 0);
  assert.equal((await d.json<{ activityTo: unknown[] }>('status --json')).activityTo.length, 0, 'nobody serves');
});
