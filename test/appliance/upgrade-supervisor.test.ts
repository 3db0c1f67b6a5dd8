// How a server is stopped and started: its unit is found by its process, systemctl gets the right arguments (a stand-in
// records them), and timeouts and failures are reported.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { lockDirectory } from '../../src/platform/lock.ts';
import { executableOf, ServiceControl, unitIn, unitOf } from '../../src/upgrade/supervisor.ts';
import { until } from '../support/until.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-service-'));
after(() => rmSync(base, { recursive: true, force: true }));
const data = join(base, 'data');
mkdirSync(data);
const calls = join(base, 'calls');

function control(more: { limit?: number; systemctl?: string } = {}): ServiceControl {
  const { limit = 5000, systemctl = '' } = more;
  writeFileSync(calls, '');
  writeFileSync(join(base, 'systemctl'), `#!/bin/sh\necho "$*" >>${calls}\n${systemctl}\n`, { mode: 0o755 });
  return new ServiceControl({ data, isNamed: true, limit, env: { PATH: `${base}:${process.env.PATH}` }, args: [] });
}

const called = (): string[] => readFileSync(calls, 'utf8').trimEnd().split('\n');

for (const [groups, unit] of [
  ['0::/system.slice/kms.service\n', { kind: 'systemd', unit: 'kms.service', user: false }],
  ['0::/system.slice/system-kms.slice/kms@blue.service', { kind: 'systemd', unit: 'kms@blue.service', user: false }],
  [
    '0::/user.slice/user-1000.slice/user@1000.service/app.slice/kms.service\n',
    { kind: 'systemd', unit: 'kms.service', user: true },
  ],
  ['0::/user.slice/user-1000.slice/session-3.scope\n', undefined],
  ['0::/user.slice/user-1000.slice/user@1000.service\n', undefined],
  ['0::/\n', undefined],
  ['0::/docker/0123\n', undefined],
  ['', undefined],
] as const) {
  test(`the unit of ${JSON.stringify(groups)}`, () => assert.deepEqual(unitIn(groups), unit));
}

test('of a process that is none there is no unit and no executable', async () => {
  assert.equal(await unitOf(2 ** 30), undefined);
  assert.equal(await executableOf(2 ** 30), undefined);
  assert.equal(await executableOf(process.pid), process.execPath);
});

test('systemctl is called for the unit, of the system or of the user', async () => {
  const service = { kind: 'systemd', unit: 'kms.service', user: false } as const;
  const one = control({ systemctl: '[ "$1" != show ] || printf "ActiveState=active\\nNRestarts=0\\n"' });
  await one.stop(service, '/kms');
  await one.start(service, '/kms');
  assert.equal(await one.failure(service), undefined);
  await one.start({ ...service, user: true }, '/kms');
  assert.deepEqual(called(), [
    'stop kms.service',
    'reset-failed kms.service',
    'start kms.service',
    'show --property=ActiveState,NRestarts kms.service',
    '--user reset-failed kms.service',
    '--user start kms.service',
  ]);
});

test('a service that systemd gave up on, or had to start again, has failed', async () => {
  const service = { kind: 'systemd', unit: 'kms.service', user: false } as const;
  for (const shown of ['ActiveState=failed\\nNRestarts=0', 'ActiveState=activating\\nNRestarts=2']) {
    const failure = await control({ systemctl: `printf "${shown}\\n"` }).failure(service);
    assert.match(failure ?? '', /systemd says that it failed: journalctl -u kms\.service/);
  }
  const refuses = control({ systemctl: '[ "$1" = reset-failed ] || exit 5' });
  await assert.rejects(refuses.start(service, '/kms'), {
    code: 'refused',
    message: 'systemctl start kms.service ended with 5',
  });
  await assert.rejects(refuses.stop(service, '/kms'), { message: 'systemctl stop kms.service ended with 5' });
});

test('commands that fail or take too long; a stop is judged by whether the directory is free', async () => {
  const commands = { kind: 'commands', stop: 'exit 1', start: 'exit 7' } as const;
  const one = control({ limit: 300 });
  await one.stop(commands, '/kms');
  await assert.rejects(one.start(commands, '/kms'), { message: 'the command that is to start it ended with 7' });
  await assert.rejects(one.start({ ...commands, start: 'sleep 60' }, '/kms'), { message: /took longer than 0\.3 s/ });
  const lock = lockDirectory(data);
  // This very process holds the lock, but does not run that executable: it is left alone.
  await assert.rejects(one.stop(commands, '/kms'), { code: 'in-use', message: new RegExp(`process ${process.pid}`) });
  lock.release();
  await one.stop(commands, '/kms');
});

test('a server of its own that ends is noticed, with what it said last', async () => {
  const none = { kind: 'none' } as const;
  const program = join(base, 'program');
  writeFileSync(program, '#!/bin/sh\necho "kms: $*" >&2\nexit 3\n', { mode: 0o755 });
  const one = control();
  await one.start(none, program);
  const failure = await until('it ends', () => one.failure(none));
  assert.equal(failure, `it ended with 3: kms: serve --data ${data} --listen 127.0.0.1:0`);
  await one.stop(none, program);
  writeFileSync(program, '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 0.1; done\n', { mode: 0o755 });
  const stubborn = control({ limit: 300 });
  await stubborn.start(none, program);
  assert.equal(await stubborn.failure(none), undefined);
  await stubborn.endChild();
  assert.match((await stubborn.failure(none)) ?? '', /it ended with nothing/);
});
