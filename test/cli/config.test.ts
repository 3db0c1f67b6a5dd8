// `kms serve --config` as typed: what a file may say, what wins, what is refused and in which words.
import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Cli, GrammarCommand } from '../../src/cli/command.ts';
import { appliance } from '../../src/cli/grammar/appliance.ts';
import type { Kind } from '../../src/cli/grammar/declaration.ts';
import { globals } from '../../src/cli/grammar/option-sets.ts';
import { settings } from '../../src/cli/grammar/serving.ts';
import { withConfigFile } from '../../src/cli/serve-config.ts';
import { defaultLifetimes } from '../../src/core/links.ts';
import { KmsError } from '../../src/errors.ts';
import { defaultBodyLimit } from '../../src/http/body.ts';
import { refuseWritable } from '../../src/platform/ownership.ts';
import { grammar, leavesOf } from './grammar-tree.ts';
import { type Desk, desk } from './kms.ts';
import { serving } from './serving.ts';

/** The command as it reads its options, typed and in the environment, without doing anything. */
async function reading(d: Desk, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const root = grammar();
  Object.assign(root.session.io, { env, cwd: d.dir });
  const serve = leavesOf(root).find((leaf) => leaf.fullName() === 'kms serve');
  assert.ok(serve instanceof GrammarCommand);
  serve.action(() => undefined);
  await root.parseAsync(['serve', ...args], { from: 'user' });
  return withConfigFile(new Cli(root.session.io, serve, appliance.serve.kinds));
}

type Reading = Awaited<ReturnType<typeof reading>>;

/** Any setting, by the name of its option. */
function valueAt(cli: Reading, option: string): unknown {
  // The names are those of the declaration.
  return option in globals ? cli.globals.get(option as '--data') : cli.get(option as '--listen');
}

/** A value that is not the default, as it would be typed. */
function sampleOf({ placeholder = '', completes, usual }: Kind<unknown>): string {
  if (Array.isArray(completes)) return completes.find((word) => word !== usual) ?? '';
  const samples: Readonly<Record<string, string>> = {
    'HOST:PORT': '127.0.0.1:9',
    CIDR: '192.0.2.0/24',
    BYTES: '8192',
    N: '3',
    TIME: '2d',
    ID: '0123456789abcdef0123456789abcdef',
    CRON: '0 4 * * *',
  };
  return samples[placeholder] ?? 'sample';
}

test('every option of serve can be given in the file, and means what it means when it is typed', async () => {
  await using d = await desk();
  assert.ok(settings.size >= 40, String(settings.size));
  for (const [name, { option, kind }] of settings) {
    const sample = kind.placeholder === undefined ? undefined : sampleOf(kind);
    const inFile = sample === undefined ? 'true' : kind.isRepeated ? `["${sample}", "${sample}"]` : sample;
    await writeFile(d.path('kms.yaml'), `${name}: ${inFile}\n`);
    const typed = sample === undefined ? [option] : [option, sample];
    const read = valueAt(await reading(d, [...typed, ...(kind.isRepeated ? typed : [])]), option);
    assert.notDeepEqual(read, valueAt(await reading(d, []), option), name);
    assert.deepEqual(valueAt(await reading(d, ['--config', 'kms.yaml']), option), read, name);
  }
  const own = leavesOf(grammar())
    .find((leaf) => leaf.fullName() === 'kms serve')
    ?.options.map(({ long }) => long);
  const declared = [...settings.values()].map(({ option }) => option).filter((option) => !(option in globals));
  assert.deepEqual(own?.filter((long) => long !== '--config' && long !== '--help').sort(), declared.sort());
});

test('what is declared as a default is what there is without', async () => {
  await using d = await desk();
  const cli = await reading(d, []);
  const lifetimes = {
    access: cli.get('--access-ttl'),
    session: cli.get('--session-max'),
    invite: cli.get('--invite-ttl'),
    reset: cli.get('--reset-ttl'),
    workload: cli.get('--workload-ttl'),
  };
  assert.deepEqual([cli.get('--body-limit'), lifetimes], [defaultBodyLimit, defaultLifetimes]);
});

test('what is typed wins over the environment, that over the file, that over the default', async () => {
  await using d = await desk();
  await writeFile(d.path('kms.yaml'), 'backupKeep: 5\nbehindProxy: true\ntangAllow: [10.0.0.0/8]\n');
  const read = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const cli = await reading(d, args, env);
    return [cli.get('--backup-keep'), cli.get('--behind-proxy'), cli.get('--tang-allow')];
  };
  const env = { KMS_BACKUP_KEEP: '4', KMS_BEHIND_PROXY: 'no', KMS_TANG_ALLOW: '192.0.2.0/24' };
  const file = { KMS_CONFIG: 'kms.yaml' };
  assert.deepEqual(await read([], {}), [7, false, []]);
  assert.deepEqual(await read([], file), [5, true, ['10.0.0.0/8']]);
  assert.deepEqual(await read([], { ...file, ...env }), [4, false, ['192.0.2.0/24']]);
  assert.deepEqual(await read(['--backup-keep', '3'], { ...file, ...env }), [3, false, ['192.0.2.0/24']]);
  assert.deepEqual(await read([], { ...file, KMS_BACKUP_KEEP: '' }), [5, true, ['10.0.0.0/8']]);
});

test('paths in the file are relative to its directory, others to where the command was typed', async () => {
  await using d = await desk();
  await mkdir(d.path('etc'));
  await writeFile(d.path('etc', 'kms.yaml'), 'tlsCert: cert.pem\nkeyFile: ../master.key\nbackupTo: /backups\n');
  const cli = await reading(d, ['--config', 'etc/kms.yaml', '--tls-key', 'key.pem']);
  assert.deepEqual(
    [cli.get('--tls-cert'), cli.get('--tls-key'), cli.get('--backup-to'), cli.globals.get('--key-file')],
    [d.path('etc', 'cert.pem'), d.path('key.pem'), '/backups', d.path('master.key')],
  );
});

test('JSON is fine, and so are comments alone, anchors and lists', async () => {
  await using d = await desk();
  const limit = async (text: string): Promise<unknown> => {
    await writeFile(d.path('kms.yaml'), text);
    return (await reading(d, ['--config', 'kms.yaml'])).get('--body-limit');
  };
  assert.equal(await limit('{\n\t"bodyLimit": 8192,\n\t"activityTo": [\n\t\t"logs"\n\t]\n}\n'), 8192);
  assert.equal(await limit('bodyLimit: "8192"'), 8192);
  assert.equal(await limit('\ufeffbodyLimit: 8192'), 8192);
  assert.equal(await limit('backupKeep: &many 8192\nbodyLimit: *many'), 8192);
  assert.equal(await limit('url: |-\n  *a &b\nsmtpFrom: "*c"\nbodyLimit: 8192'), 8192);
  for (const nothing of ['', '# bodyLimit: 8192\n', 'null', '{}', '---\n']) assert.equal(await limit(nothing), 1048576);
});

test('the work of reading a file does not grow faster than the file', async () => {
  await using d = await desk();
  const refused = async (text: string): Promise<readonly [problem: string, processor: number]> => {
    await writeFile(d.path('kms.yaml'), text.slice(0, 65_536));
    const before = process.cpuUsage();
    const problem = await reading(d, ['--config', 'kms.yaml']).then(() => '', String);
    const { user, system } = process.cpuUsage(before);
    return [problem, (user + system) / 1e6];
  };
  const numbers = Array.from({ length: 16_384 }, (_, at) => at.toString(36));
  const files: Readonly<Record<string, readonly [text: string, problem: RegExp]>> = {
    aliases: [`url: &a x\n${numbers.map((n) => `x${n}: *a`).join('\n')}`, /:34: expected at most 32 aliases \(\*\)/],
    anchors: [`${numbers.map((n) => `x${n}: &a 1`).join('\n')}`, /:33: expected at most 32 anchors \(&\)/],
    references: [`url: [${'&a [*a,'.repeat(9000)}`, /:1: expected at most 32 (?:aliases|anchors)/],
    options: [
      numbers
        .slice(0, 7000)
        .map((n) => `x${n}: 1`)
        .join('\n'),
      /:1: unknown option/,
    ],
    keys: [`{${numbers.map((n) => `x${n}`).join()}`, /:1: expected/],
    brackets: [`url: ${'['.repeat(65_000)}`, /:1: expected/],
  };
  for (const [what, [text, problem]] of Object.entries(files)) {
    const [said, processor] = await refused(text);
    assert.match(said, problem, what);
    // About 0.2; with aliases it was 47.
    assert.ok(processor < 2.5, `${what}: ${processor} s`);
  }
});

/** Wrong files with the error for each; `FILE` stands for the name. */
const wrong: readonly (readonly [text: string, stderr: string])[] = [
  ['backupkeep: 3', "FILE:1: unknown option 'backupkeep'; did you mean backupKeep?"],
  ['\n# one\ntls-cert: x', "FILE:3: unknown option 'tls-cert'; did you mean tlsCert?"],
  ['server: https://kms.example', "FILE:1: unknown option 'server'"],
  ['"a\\tb\\e[1m": c', "FILE:1: unknown option 'a\\x09b\\x1b[1m'"],
  ['config: other.yaml', "FILE:1: unknown option 'config'"],
  ['backupKeep: 3\nbackupKeep: 4', 'FILE:2: backupKeep is given twice'],
  ['{"listen": "a:1", "listen": "a:2"}', 'FILE:1: listen is given twice'],
  ['backupKeep: some', 'FILE:1: backupKeep: expected a whole number, got "some"'],
  ['backupKeep: 1e3', 'FILE:1: backupKeep: expected a whole number, got "1e3"'],
  ['backupKeep: 0', 'FILE:1: backupKeep: expected at least 1, got 0'],
  ['backupKeep:', 'FILE:1: backupKeep: expected text or a number, got nothing'],
  ['url: true', 'FILE:1: url: expected text or a number, got true'],
  ['url: [a]', 'FILE:1: url: expected text or a number, got something else'],
  ['url: "a\\nb"', 'FILE:1: url: expected text or a number, got text with a control character'],
  ['crypto: rot13', 'FILE:1: crypto: expected node or noble, got "rot13"'],
  ['accessTtl: 1\nshipEvery: 5s', 'FILE:1: accessTtl: expected a duration such as 30s, 15m, 12h or 7d, got "1"'],
  ['behindProxy: yes', 'FILE:1: behindProxy: expected true or false, got "yes"'],
  ['behindProxy: 1', 'FILE:1: behindProxy: expected true or false, got something else'],
  ['tangAllow: 10.0.0.0/8', 'FILE:1: tangAllow: expected a list of texts, such as [CIDR]'],
  ['activityTo: [[a]]', 'FILE:1: activityTo: expected a list of texts, such as [TARGET]'],
  ['tlsCert: ""', 'FILE:1: tlsCert: expected a path, got nothing'],
  ['listen: nowhere', 'FILE:1: listen: expected HOST:PORT, got "nowhere"; such as 127.0.0.1:8080 or [::1]:8080'],
  ['\nvaultListen: x', 'FILE:2: vaultListen: expected HOST:PORT, got "x"; such as 127.0.0.1:8080 or [::1]:8080'],
  ['backupKeep: 3', 'FILE:1: backupKeep goes with backupTo'],
  ['activityRetention: 1h', 'FILE:1: activityRetention: expected at least 1d'],
  [
    'backupTo: copies\nbackupSchedule: often',
    'FILE:2: backupSchedule: expected a cron expression such as "0 3 * * *", got "often"',
  ],
  ['listen: 127.0.0.1:9\ntangListen: 127.0.0.1:9', 'FILE:1: listen and tangListen have the same address, 127.0.0.1:9'],
  ['smtpUrl: smtp://a\nsmtpUrlFile: b', 'FILE:1: smtpUrl and smtpUrlFile exclude each other'],
  ['storePasswordFile: x', 'FILE:1: storePasswordFile goes with store'],
  ['expectAppliance: me', 'FILE:1: expectAppliance: expected the id of an appliance, 32 hex digits, got "me"'],
  ['listen', 'FILE:1: expected options, each as NAME: VALUE'],
  ['- listen', 'FILE:1: expected options, each as NAME: VALUE'],
  ['? [a]\n: b', 'FILE:1: expected options, each as NAME: VALUE'],
  ['url: b: c', 'FILE:1: expected YAML: nested mappings are not allowed in compact mappings'],
  ['url: "secret', 'FILE:1: expected YAML: missing closing "quote'],
  ['url: !mine x', 'FILE:1: expected plain values, found a tag (!)'],
  ['url: !!timestamp 2027-01-01', 'FILE:1: expected plain values, found a tag (!)'],
  ['url: a\n---\nurl: b', 'FILE:2: expected one document, found several'],
];

for (const [text, stderr] of wrong) {
  test(`a file is refused by its line: ${JSON.stringify(text)}`, async () => {
    await using d = await desk();
    await writeFile(d.path('kms.yaml'), text);
    const ran = await d.kms('serve --config kms.yaml --log-level silent');
    const said = stderr.replace('FILE', d.path('kms.yaml'));
    const hint =
      /; such as /.test(said) || /cron expression/.test(said)
        ? ''
        : /(?:(?<!\?); see|(?<=\?) See) `kms (?:serve )?--help`/.source;
    assert.deepEqual([ran.code, ran.stdout], [2, '']);
    assert.match(ran.stderr, new RegExp(`^kms: ${said.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}${hint}\n$`));
  });
}

test('a file that is not there, too large, no text, or that others can write to is refused', async () => {
  await using d = await desk();
  const file = d.path('kms.yaml');
  const refusal = async (): Promise<string> => {
    const { code, stderr } = await d.kms('serve --config kms.yaml');
    assert.equal(code, 1, stderr);
    return stderr.replaceAll(file, 'FILE');
  };
  assert.match(await refusal(), /^kms: cannot read a configuration from FILE: /);
  await writeFile(file, `# ${'x'.repeat(65_536)}`);
  assert.equal(await refusal(), 'kms: FILE is too large to hold a configuration\n');
  await writeFile(file, Buffer.from('url: \xff', 'latin1'));
  assert.match(await refusal(), /^kms: FILE: expected a configuration in UTF-8, found bytes that are not/);
  await writeFile(file, 'listen: 127.0.0.1:0');
  await chmod(file, 0o664);
  assert.equal(
    await refusal(),
    'kms: FILE: its group can write to it (mode 0664); see that it says what you mean, then run: chmod go-w FILE\n',
  );
  await chmod(file, 0o602);
  assert.match(await refusal(), /^kms: FILE: everybody on this machine can write to it \(mode 0602\); /);
});

test('a file of another user is refused, unless it is root or gives it by a group', () => {
  const me = { uid: 1000, groups: [1000, 2000] };
  const of = (uid: number, gid: number, mode: number) => () => refuseWritable('f', { uid, gid, mode }, me);
  for (const owned of [of(1000, 1000, 0o644), of(0, 0, 0o644), of(0, 1000, 0o640), of(4000, 2000, 0o660)]) owned();
  assert.throws(of(4000, 4000, 0o644), { code: 'refused', message: 'f: belongs to another user, who could change it' });
  assert.throws(of(0, 0, 0o646), KmsError);
  assert.throws(of(1000, 1000, 0o660), KmsError);
});

test('a file with a password in it is refused while others can read it', async () => {
  await using d = await desk();
  const file = d.path('kms.yaml');
  for (const [name, url] of [
    ['smtpUrl', 'smtp://kms:hunter2@mail.example'],
    ['store', 'postgres://kms:hunter2@127.0.0.1:1/kms'],
    ['store', 'postgres://kms:hunter2@127.0.0.1:1,127.0.0.1:2/kms'],
  ]) {
    await writeFile(file, `smtpFrom: kms@kms.example\n${name}: ${url}\n`, { mode: 0o644 });
    await chmod(file, 0o644);
    const { code, stderr } = await d.kms('serve --config kms.yaml');
    assert.deepEqual(
      [code, stderr.replaceAll(file, 'FILE')],
      [
        1,
        `kms: FILE: other users can read it, and it holds a password in ${name} (mode 0644); ` +
          'run: chmod 0600 FILE; if anybody else may have read it, change the password\n',
      ],
    );
    await chmod(file, 0o600);
    assert.doesNotMatch((await d.kms('serve --config kms.yaml --listen nowhere')).stderr, /hunter2|can reach it/);
  }
});

test('it serves what the file says', async () => {
  await using d = await desk();
  await mkdir(d.path('etc'));
  const text = 'data: ../data\nkeyFile: ../keys/master.key\nactivityTo: [../streamed]\nactivityRetention: 400d\n';
  await mkdir(d.path('keys'));
  await writeFile(d.path('etc', 'kms.yaml'), text);
  const server = await serving(d, ['--config', 'etc/kms.yaml']);
  const status = await d.json('status --json --data data');
  await server.stop();
  assert.deepEqual(
    [status.activityRetention, status.activityTo],
    [
      { seconds: 400 * 86_400, waitingRecords: 0 },
      [{ kind: 'directory', to: d.path('streamed'), lagRecords: 0, lagSeconds: 0 }],
    ],
  );
  assert.ok((await readFile(d.path('keys', 'master.key'))).length > 0);
});
