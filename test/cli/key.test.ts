// Managed keys, whose keys the appliance holds, from the command line: their life, and work with them. Import and
// export are in key-transfer.test.ts.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { desk, pick, typed, withKey } from './kms.ts';

const tty = { stdin: true, stdout: true, stderr: true, columns: 200 };

test('managed keys: make, encrypt, rotate, decrypt, configure, delete and restore', async () => {
  await using d = await desk();
  await d.kms('init');
  const { key } = await d.json<{ key: { id: string; custody: string } }>('key create Unseal --json');
  assert.equal(key.custody, 'server');
  const shown = await d.kms('key show unseal');
  assert.match(shown.stdout, /custody +server: the appliance holds its keys\n/);
  const made = await d.kms('key encrypt unseal --associated-data a', { stdin: 'hello\n' });
  assert.match(made.stdout, /^vault:v1:\S+\n$/);
  assert.deepEqual(pick(await d.kms('key rotate unseal')), [0, 'unseal has the new version 2\n', '']);
  const opened = await d.kms('key decrypt unseal --associated-data a', { stdin: made.stdout });
  assert.deepEqual([opened.code, opened.stdout], [0, 'hello\n']);
  const wrong = await d.kms('key decrypt unseal', { stdin: made.stdout });
  assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
  assert.match(wrong.stderr, /^kms: the message does not open; it was altered, or .* another --associated-data /);
  const large = await d.kms('key encrypt unseal', { stdin: 'x'.repeat(600_000) });
  assert.equal(large.code, 1);
  assert.match(large.stderr, /over the limit of 524288 bytes/);
  assert.match((await d.kms('key list')).stdout, /^NAME +TYPE +VERSION +STATE .*\nUnseal +aes256-gcm +2 +active /);
  assert.match((await d.kms('status')).stdout, /MANAGED KEYS.*\ndefault .* 1 /);
  assert.match((await d.kms('recovery-kit')).stdout, /"server" \(managed keys\)[\s\S]*on that day: default 1\.\n/);
  const refused = await d.kms('key delete unseal --yes');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /unseal is protected from deletion/);
  assert.match((await d.kms('key config unseal --deletion-allowed true --rotate-after 90d')).stdout, /90d/);
  assert.equal((await d.kms('key delete unseal --yes')).code, 0);
  assert.equal((await d.kms(`key restore ${key.id}`)).code, 0);
  const again = await d.kms('key decrypt unseal --associated-data a', { stdin: made.stdout });
  assert.equal(again.stdout, 'hello\n');
  assert.equal((await d.kms('tenant update default --custody client')).code, 0);
  const denied = await d.kms('key create other');
  assert.equal(denied.code, 1);
  assert.match(denied.stderr, /custody client/);
  assert.equal((await d.kms('key encrypt unseal', { stdin: 'x' })).code, 0, 'those that are there go on');
});

test('a key is made as asked, and its configuration changed', async () => {
  await using d = await withKey();
  const line =
    'key create Release --type rsa-2048 --use verify --use sign --alias apps/release --alias r2 --exportable ' +
    '--rotate-after 90d --deletion-allowed --tag team=a=b --tag x= --activate-at 2999-01-01 --json';
  const { key } = await d.json<{ key: Record<string, unknown> }>(line);
  assert.deepEqual(
    [key.type, key.uses, key.aliases, key.exportable, key.rotateAfter, key.deletionAllowed, key.tags, key.state],
    [
      'rsa-2048',
      ['verify', 'sign', 'export'],
      ['apps/release', 'r2'],
      true,
      90 * 86_400,
      true,
      { team: 'a=b', x: '' },
      'pre-active',
    ],
  );
  const shown = await d.kms('key show apps/release');
  assert.match(shown.stdout, /^aliases +apps\/release r2$/m);
  assert.match(shown.stdout, /^tags +team=a=b x=$/m);
  assert.match(shown.stdout, /^active from +2999-01-01T00:00:00\.000Z$/m);
  assert.match(shown.stdout, /^public key +\S{60}\.\.\. \(whole with --json\)$/m);
  const changed = await d.json<{ key: Record<string, unknown> }>(
    'key config release --activate-at never --tag none --exportable false --rotate-after never --json',
  );
  const { activateAt, tags, exportable, rotateAfter } = changed.key;
  assert.deepEqual([activateAt, tags, exportable, rotateAfter], [null, {}, false, null]);
  assert.match((await d.kms('key config release --exportable true')).stderr, /may not leave the appliance stays so/);
  for (const [wrong, said] of [
    ['key create x --type aes', /--type: expected aes128-gcm, .* or secret, got "aes"; see/],
    ['key create x --use dance', /--use: expected encrypt, .* or export, got "dance"; see/],
    ['key create x --tag team', /--tag: expected NAME=VALUE, got "team"; see/],
    ['key create x --tag team=pay --tag team=ops', /--tag: expected each name once, got "team" twice; see/],
    ['key config release --min-decrypt 2', /unknown option .*--min-decrypt-version/],
    ['key delete release --days 6', /--days: expected at least 7, got 6; see/],
    ['key enable release --version 0', /--version: expected at least 1, got 0; see/],
  ] as const) {
    const { code, stderr } = await d.kms(wrong);
    assert.equal(code, 2, stderr);
    assert.match(stderr, said);
  }
});

test('older versions are refused from the configured ones on, and listed', async () => {
  await using d = await withKey('key create unseal', 'key rotate unseal');
  const old = await d.kms('key encrypt unseal', { stdin: 'x' });
  await d.kms('key rotate unseal');
  assert.match((await d.kms('key config unseal --min-decrypt-version 3 --yes')).stdout, /^decrypts from +version 3$/m);
  assert.equal((await d.kms('key decrypt unseal', { stdin: old.stdout })).code, 1);
  const min = await d.kms('key config unseal --min-decrypt-version 1 --min-encrypt-version 2');
  assert.match(min.stdout, /^encrypts with +version 2 and later$/m);
  const { stdout } = await d.kms('key versions unseal');
  assert.match(stdout, /^VERSION +STATE +PRIMARY +ORIGIN +CREATED\n3 +active +yes +generated .*\n2 .*\n1 +active +no /);
});

test('disable and delete tell who uses the key, before they ask; consent stops what is in use', async () => {
  await using d = await withKey('key create unseal --deletion-allowed', 'key create idle --deletion-allowed');
  await d.kms('key encrypt unseal', { stdin: 'x' });
  const table =
    '  WHO +DIALECT +VERSION +WHAT FOR +LAST +TIMES\n  local +native +1 +encrypt +(?:just now|\\d+ (?:s|min) ago) +1\n';
  const asked = await d.kms('key disable unseal', { tty, stdin: typed('n\n') });
  assert.equal(asked.code, 1);
  const question =
    'This disables the managed key unseal: nothing works with it until `kms key enable unseal`\\. Go on\\? \\[y/N\\] ';
  assert.match(asked.stderr, new RegExp(`^Who uses unseal:\n${table}${question}kms: not confirmed`));
  assert.match(
    (await d.kms('key disable idle', { tty, stdin: typed('n\n') })).stderr,
    /^No caller has ever used idle\.\nThis disables the managed key idle/,
  );
  const done = await d.kms('key disable unseal', { tty, stdin: typed('y\n') });
  assert.deepEqual([done.code, done.stdout], [0, 'the managed key unseal is disabled\n']);
  assert.match((await d.kms('key encrypt unseal', { stdin: 'x' })).stderr, /^kms: the key is suspended/);
  assert.equal((await d.kms('key enable unseal')).stdout, 'the managed key unseal is active\n');

  const kept = await d.kms('key delete unseal --days 7', { tty, stdin: typed('y\n') });
  assert.match(kept.stderr, new RegExp(`^Who uses unseal:\n${table}This deletes the managed key unseal: .* 7 days`));
  const gone = await d.kms('key delete unseal --days 7', { tty, stdin: typed('unseal\n') });
  assert.equal(gone.code, 0, gone.stderr);
  assert.match(gone.stdout, /^unseal is deleted; for 7 days `kms key restore mkey_\w+` restores it\n$/);
  assert.match((await d.kms('key list --deleted')).stdout, /^NAME +ID +.*\nunseal +mkey_/);
});

test('what cannot be disabled or deleted is told before the question', async () => {
  await using d = await withKey('key create unseal --alias app/db', 'key create old', 'key compromised old');
  for (const [line, said] of [
    [
      'key delete app/db',
      'kms: unseal is protected from deletion; ' + 'lift that with `kms key config unseal --deletion-allowed true`\n',
    ],
    ['key disable unseal --version 9', 'kms: unseal has no version 9; check the name or id\n'],
    ['key disable old', 'kms: the managed key old is compromised: only what is active can be disabled\n'],
    ['key disable unsael', 'kms: there is no managed key unsael; did you mean unseal?\n'],
    ['key rotate unsael', 'kms: there is no managed key unsael; did you mean unseal?\n'],
  ] as const) {
    assert.deepEqual(pick(await d.kms(line, { tty, stdin: typed('y\n') })), [1, '', said], line);
  }
  const byAlias = await d.kms('key disable app/db', { tty, stdin: typed('n\n') });
  assert.match(
    byAlias.stderr,
    /^app\/db is the managed key unseal\.\nNo caller has ever used app\/db\.\nThis disables /,
  );
});

test('one version is disabled, enabled, or compromised for good', async () => {
  await using d = await withKey('key create unseal', 'key rotate unseal');
  const first = await d.kms('key encrypt unseal', { stdin: 'x' });
  const other = await d.kms('key disable unseal --version 1', { tty, stdin: typed('n\n') });
  assert.match(
    other.stderr,
    /^No caller has ever used version 1 of unseal\.\n.*until `kms key enable unseal --version 1`\. /,
  );
  const done = await d.kms('key disable unseal --version 2 --yes');
  assert.deepEqual(pick(done), [0, 'version 2 of the managed key unseal is disabled\n', '']);
  assert.match((await d.kms('key encrypt unseal', { stdin: 'x' })).stdout, /^vault:v1:/);
  assert.equal((await d.kms('key decrypt unseal', { stdin: first.stdout })).code, 1);
  assert.equal((await d.kms('key enable unseal --version 2')).code, 0);
  const not = await d.kms('key compromised unseal --version 2', { tty, stdin: typed('n\n') });
  assert.match(not.stderr, /\nThis marks version 2 of the managed key unseal as compromised for good: /);
  const marked = await d.kms('key compromised unseal --version 2');
  assert.deepEqual(pick(marked), [0, 'version 2 of the managed key unseal is marked as compromised\n', '']);
  const opened = await d.kms('key decrypt unseal', { stdin: first.stdout });
  assert.deepEqual([opened.code, opened.stdout], [0, 'x']);
  assert.match(opened.stderr, /^kms: warning: this version of the key is compromised: /);
  assert.equal((await d.kms('key enable unseal --version 2')).code, 1);
});

test('--version of the whole command line still tells its version, but is an option where a command has one', async () => {
  await using d = await desk();
  for (const line of ['--version', 'key --version', 'key show x --version', '--data d key --version']) {
    assert.match((await d.kms(line)).stdout, /^\d+\.\d+\.\d+/, line);
  }
  for (const line of [
    'key enable x --version 2',
    '--data key key enable --version=2 x',
    'key --json enable x --version 2',
  ]) {
    assert.match((await d.kms(line)).stderr, /^kms: nothing to talk to/, line);
  }
  const help = (await d.kms('key enable --help')).stdout;
  assert.deepEqual(help.match(/^ +--version.*/gm), ['  --version <N>  this version alone']);
});

test('dependents: who used the key, by name, since when; rotate shows them to people alone', async () => {
  await using d = await withKey('key create unseal', 'key create idle');
  const none = await d.kms('key dependents idle');
  assert.deepEqual(pick(none), [0, '', 'kms: no caller has ever used idle\n']);
  await d.kms('key encrypt unseal', { stdin: 'x' });
  await d.kms('key encrypt unseal', { stdin: 'x' });
  const all = await d.kms('key dependents unseal');
  assert.match(all.stdout, /^WHO +DIALECT .*\nlocal +native +1 +encrypt +\d{4}-\S+Z +2\n$/);
  assert.equal((await d.kms('key dependents unseal --since 1h')).stdout, all.stdout);
  const { dependents } = await d.json<{ dependents: unknown[] }>('key dependents unseal --since 2999-01-01 --json');
  assert.deepEqual(dependents, []);
  assert.deepEqual(pick(await d.kms('key rotate unseal')), [0, 'unseal has the new version 2\n', '']);
  const told = await d.kms('key rotate unseal', { tty });
  assert.equal(told.stdout, 'unseal has the new version 3\n');
  assert.match(told.stderr, /^Who uses unseal:\n {2}WHO .*\n {2}local .*\n$/);
});

test('aliases: a key is found by them, they move, and they go', async () => {
  await using d = await withKey('key create unseal', 'key create other');
  const added = await d.kms('key alias add unseal app/db');
  assert.deepEqual(pick(added), [0, 'app/db is a name of the managed key unseal\n', '']);
  const made = await d.kms('key encrypt app/db', { stdin: 'x' });
  assert.equal((await d.kms('key decrypt unseal', { stdin: made.stdout })).stdout, 'x');
  await d.kms('key alias add other App/DB --yes');
  const { key } = await d.json<{ key: { name: string } }>('key show app/db --json');
  assert.equal(key.name, 'other');
  assert.equal((await d.kms('key alias remove unseal app/db --yes')).code, 1, 'it is the alias of another key');
  const removed = await d.kms('key alias remove other app/db --yes');
  assert.deepEqual(pick(removed), [0, 'app/db is no longer a name of the managed key other\n', '']);
  assert.equal((await d.kms('key show app/db')).code, 1);
});

test('sign and verify, of every kind of option; what does not fit is exit code 1', async () => {
  await using d = await withKey(
    'key create release --type ecdsa-p256',
    'key create rsa --type rsa-2048',
    'key create ed --type ed25519',
  );
  await writeFile(d.path('msg'), 'message');
  await writeFile(d.path('other'), 'another');
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode('message')));
  await writeFile(d.path('digest'), digest);
  for (const [name, options] of [
    ['release', ''],
    ['release', '--encoding raw'],
    ['release', '--hash sha2-512'],
    ['rsa', '--padding pkcs1v15'],
    ['rsa', '--hash sha2-384'],
    ['ed', ''],
  ] as const) {
    const more = options === '' ? [] : options.split(' ');
    const { stdout: signature, code, stderr } = await d.kms(['key', 'sign', name, 'msg', ...more]);
    assert.equal(code, 0, stderr);
    assert.match(signature, /^vault:v1:\S+\n$/);
    const verified = await d.kms(['key', 'verify', name, 'msg', '--signature', signature, ...more]);
    assert.deepEqual(pick(verified), [0, 'valid\n', ''], `${name} ${options}`);
    const wrong = await d.kms(['key', 'verify', name, 'other', '--signature', signature, ...more]);
    assert.deepEqual([wrong.code, wrong.stdout], [1, '']);
    assert.match(wrong.stderr, /^kms: the signature does not fit the message; /);
  }
  const hashed = await d.kms('key sign rsa digest --prehashed --hash sha2-256');
  const whole = ['key', 'verify', 'rsa', 'msg', '--hash', 'sha2-256', '--signature', hashed.stdout];
  assert.equal((await d.kms(whole)).stdout, 'valid\n');
  const answer = await d.kms(['key', 'verify', 'rsa', 'other', '--signature', hashed.stdout, '--json']);
  assert.deepEqual([answer.code, JSON.parse(answer.stdout)], [1, { valid: false }]);
  assert.match(
    (await d.kms('key sign rsa', { stdin: 'x'.repeat(600_000) })).stderr,
    /for RSA and ECDSA keys, hash it, and give the hash with --prehashed\n$/,
  );
});

test('the longest message that is taken comes back, and a MAC too long to make is not told of --prehashed', async () => {
  await using d = await withKey('key create unseal', 'key create hook --type hmac-sha256');
  const stdin = 'x'.repeat(512 * 1024);
  const made = await d.kms('key encrypt unseal', { stdin });
  assert.equal(made.code, 0, made.stderr);
  const back = await d.kms('key decrypt unseal', { stdin: made.stdout });
  assert.equal(back.code, 0, back.stderr);
  assert.ok(back.stdout === stdin);
  const mac = await d.kms('key mac hook', { stdin });
  assert.equal((await d.kms(['key', 'verify', 'hook', '--mac', mac.stdout], { stdin })).code, 0);
  for (const line of ['key mac hook', 'key verify hook --mac vault:v1:AAAA']) {
    const over = await d.kms(line, { stdin: `${stdin}x` });
    assert.match(over.stderr, /over the limit of 524288 bytes; let the MAC be that of its hash, in both places\n$/);
  }
});

test('MACs and data keys', async () => {
  await using d = await withKey('key create hook --type hmac-sha256', 'key create unseal');
  const { stdout: mac } = await d.kms('key mac hook', { stdin: 'body' });
  assert.match(mac, /^vault:v1:\S+\n$/);
  assert.equal((await d.kms(['key', 'verify', 'hook', '--mac', mac], { stdin: 'body' })).stdout, 'valid\n');
  const wrong = await d.kms(['key', 'verify', 'hook', '--mac', mac], { stdin: 'other' });
  assert.match(wrong.stderr, /^kms: the MAC does not fit the message; /);
  for (const [line, said] of [
    ['key verify hook', /^kms: expected --signature or --mac /],
    ['key verify hook --mac a --signature b', /^kms: --signature and --mac exclude each other; /],
    ['key datakey unseal --bits 100', /^kms: --bits: expected 128, 256 or 512, got "100"; /],
  ] as const) {
    const { code, stderr } = await d.kms(line);
    assert.equal(code, 2);
    assert.match(stderr, said);
  }
  const both = await d.json<{ plaintext: string; ciphertext: string }>('key datakey unseal --bits 512 --json');
  assert.equal(Buffer.from(both.plaintext, 'base64').length, 64);
  const opened = await d.kms('key decrypt unseal', { stdin: both.ciphertext });
  assert.equal(opened.bytes.toString('base64'), both.plaintext);
  const wrapped = await d.kms('key datakey unseal --wrapped --associated-data a');
  assert.match(wrapped.stdout, /^vault:v1:\S+\n$/);
  assert.equal((await d.kms('key decrypt unseal --associated-data a', { stdin: wrapped.stdout })).bytes.length, 32);
  assert.match((await d.kms('key datakey unseal')).stdout, /^data key +\S{44}\nencrypted +vault:v1:\S+\n$/);
});

test("problems in Vault's words on the wire name the options of the command line", async () => {
  await using d = await withKey('key create unseal', 'key create each --derived', 'key create hook --type hmac-sha256');
  const { stdout } = await d.kms('key encrypt unseal', { stdin: 'x' });
  for (const [line, said, stdin = 'x'] of [
    ['key encrypt each', 'the key needs a context, .*; give --context TEXT; decrypting takes the same as encrypting'],
    ['key datakey each', 'the key needs a context, .*; give --context TEXT; .*'],
    ['key encrypt unseal --context a', 'this key takes no context; bind the message with --associated-data instead'],
    ['key decrypt unseal --associated-data b', 'the message does not open; it was altered, or .*', stdout],
    ['key decrypt unseal', 'expected an encrypted message, .*; give the whole text that `kms key encrypt` printed'],
    ['key verify hook --mac x', 'expected a MAC, .*; give the whole text that `kms key mac` printed'],
  ] as const) {
    const { code, stderr } = await d.kms(line, { stdin });
    assert.equal(code, 1, line);
    assert.match(stderr, new RegExp(`^kms: ${said}\\n$`), line);
  }
});

test('key show says what versions do in the words of the type', async () => {
  await using d = await withKey(
    'key create unseal --rotate-after 90d',
    'key create ed --type ed25519',
    'key create hook --type hmac-sha256',
    'key create token --type secret',
  );
  for (const [name, ...lines] of [
    ['unseal', 'decrypts from +version 1', 'encrypts with +any version', 'rotates +once a version is 90d old'],
    ['ed', 'verifies from +version 1', 'signs with +any version', 'rotates +never by itself'],
    ['hook', 'verifies from +version 1', 'makes MACs with +any version'],
    ['token', 'works from +version 1'],
  ]) {
    const { stdout } = await d.kms(`key show ${name}`);
    for (const line of lines) assert.match(stdout, new RegExp(`^${line}$`, 'm'));
    if (name !== 'unseal') assert.doesNotMatch(stdout, /crypts/);
  }
});

test('a deleted key is restored by the end of its id, if only one fits', async () => {
  await using d = await withKey('key create unseal --deletion-allowed');
  const { key } = await d.json<{ key: { id: string } }>('key show unseal --json');
  await d.kms('key delete unseal --yes');
  const none = await d.kms('key restore mkey_…zzzzzz');
  assert.equal(none.code, 1);
  assert.match((await d.kms(`key restore mkey_…${key.id.slice(-6)}`)).stdout, /^name +unseal$/m);
});

test('a name that a managed key cannot have is not called one of a ring', async () => {
  await using d = await withKey();
  assert.match((await d.kms('key create bad/name')).stderr, /^kms: "bad\/name" cannot name a managed key; /);
});

test('a list by tags has the keys with all of them, and says where there is none', async () => {
  await using d = await withKey(
    'key create a --tag team=pay --tag stage=prod',
    'key create b --tag team=pay',
    'key create c --tag team=hr',
  );
  const names = async (args: string): Promise<string[]> => {
    const { data } = await d.json<{ data: { name: string }[] }>(`key list ${args} --json`);
    return data.map(({ name }) => name).sort();
  };
  assert.deepEqual(await names('--tag team=pay'), ['a', 'b']);
  assert.deepEqual(await names('--tag team=pay --tag stage=prod'), ['a']);
  assert.deepEqual(await names('--tag team=pay --tag stage=test'), []);
  assert.deepEqual(await names('--wide'), ['a', 'b', 'c']);
  assert.equal((await d.kms('key list --tag team=none')).stderr, 'kms: no managed keys with this tag\n');
  assert.match((await d.kms('key ls --tag team=hr')).stdout, /^NAME .*\nc /);
  for (const [args, said] of [
    ['--tag none', '--tag: expected NAME=VALUE, got "none"'],
    ['--tag team', '--tag: expected NAME=VALUE, got "team"'],
    ['--tag team=pay --tag team=hr', '--tag: expected each name once, got "team" twice'],
    ['--tag team=pay --limit 3', '--tag and --limit exclude each other'],
    ['--tag team=pay --cursor x', '--tag and --cursor exclude each other'],
  ] as const) {
    const { code, stderr } = await d.kms(`key list ${args}`);
    assert.deepEqual([code, stderr], [2, `kms: ${said}; see \`kms key list --help\`\n`]);
  }
  const twice = await d.kms('key create d --tag a=1 --tag a=2');
  assert.deepEqual([twice.code, (await d.kms('key show d')).code], [2, 1], twice.stderr);
});

test('--exportable and --deletion-allowed take true or false or neither, wherever they stand', async () => {
  await using d = await withKey();
  const made = async (args: string, env = {}): Promise<unknown> => {
    const { key } = await d.json<{ key: { exportable: boolean; deletionAllowed: boolean } }>(`key ${args} --json`, {
      env,
    });
    return [key.exportable, key.deletionAllowed];
  };
  assert.deepEqual(await made('create a'), [false, false]);
  assert.deepEqual(await made('create --exportable b --deletion-allowed'), [true, true]);
  assert.deepEqual(await made('create --exportable true --deletion-allowed false c'), [true, false]);
  assert.deepEqual(await made('create d --exportable=false --deletion-allowed=true'), [false, true]);
  assert.deepEqual(await made('create e', { KMS_EXPORTABLE: 'yes', KMS_DELETION_ALLOWED: '0' }), [true, false]);
  assert.deepEqual(await made('config --deletion-allowed a'), [false, true]);
  assert.deepEqual(await made('config b --exportable false --deletion-allowed false'), [false, false]);
  for (const [args, said] of [
    ['create x --exportable=maybe', '--exportable: expected true or false, got "maybe"'],
    ['create --exportable x maybe', "too many arguments for 'create'. Expected 1 argument but got 2"],
  ] as const) {
    const { code, stderr } = await d.kms(`key ${args}`);
    assert.deepEqual([code, stderr], [2, `kms: ${said}; see \`kms key create --help\`\n`]);
  }
});

test('names are listed once, however many things a command names', async () => {
  await using d = await withKey('keyring create payroll');
  const { stderr } = await d.kms('encrypt --recipient --ring payrol --ring payrll --ring payrl -o out', {
    tty: { stderr: true },
    stdin: 'x',
  });
  assert.match(stderr, /^kms: there is no keyring payrol; did you mean payroll\?\n$/);
  const { data } = await d.json<{ data: unknown[] }>('activity search --action system.names --json');
  assert.equal(data.length, 1);
  await d.kms('encrypt --recipient --ring zzz --ring yyy --ring xxx -o out', { tty: { stderr: true }, stdin: 'x' });
  const after = await d.json<{ data: unknown[] }>('activity search --action system.names --json');
  assert.equal(after.data.length, 2);
});
