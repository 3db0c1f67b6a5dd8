// Files that options read a secret from: refused if others can read them, whatever the option.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, copyFile, readdir, symlink, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { KmsError } from '../../src/errors.ts';
import { refuseExposed } from '../../src/platform/ownership.ts';
import { certificate } from '../support/localhost-certificate.ts';
import { grammar, leavesOf } from './grammar-tree.ts';
import { desk } from './kms.ts';

const encrypting = 'encrypt --ring r --private-key FILE plain';
const serving = 'serve --listen 127.0.0.1:0 --data other';
const provider = 'tenant oidc set --issuer https://login.example.org --client-id kms';

/** The contents of an option's file, and command lines that read it. */
const options: Readonly<Record<string, readonly [holds: string, ...lines: string[]]>> = {
  '--api-key-file': [
    'the API key',
    'keyring list --server http://127.0.0.1:1 --api-key-file FILE',
    'profile add p --server http://127.0.0.1:1 --api-key-file FILE',
  ],
  '--passphrase-file': [
    'the passphrase',
    'init --data other --custodian passphrase --passphrase-file FILE',
    'master add-custodian passphrase --passphrase-file FILE',
  ],
  '--key-file': ['a key', 'keyring list --key-file FILE', 'doctor --key-file FILE', `${serving} --key-file FILE`],
  '--private-key': ['the private key', encrypting, 'decrypt --private-key FILE encrypted'],
  '--client-secret-file': ["the client's secret", `${provider} --client-secret-file FILE`],
  '--smtp-url-file': ['the SMTP address', `${serving} --smtp-from kms@kms.example --smtp-url-file FILE`],
  '--activity-webhook-secret-file': [
    'the webhook secret',
    `${serving} --activity-to https://hooks.example/ --activity-webhook-secret-file FILE`,
  ],
  '--store-password-file': [
    'a password',
    'init --store postgres://kms@127.0.0.1:1/kms --data other --store-password-file FILE',
  ],
  '--password-file': ['the password', 'approval approve appr_1 --user ada --password-file FILE'],
  '--token-file': ['the token', 'import vault --address http://127.0.0.1:1 --token-file FILE'],
  '--client-key': [
    'the key of the client certificate',
    'keyring list --server https://127.0.0.1:1 --client-cert cert.pem --client-key FILE',
    'profile add p --server https://127.0.0.1:1 --client-cert cert.pem --client-key FILE',
  ],
  '--tls-key': ["the certificate's private key", `${serving} --tls-cert cert.pem --tls-key FILE`],
};

test('each option that takes a secret from a file is in the table', () => {
  const root = grammar();
  const names = [root, ...leavesOf(root)].flatMap((command) => command.options.map(({ long }) => long ?? ''));
  const isSecret = (name: string): boolean =>
    /\w-file$|^--(?:private|tls|client)-key$/.test(name) && !/-?(?:ca|jwks|metrics)-file$/.test(name);
  assert.deepEqual([...new Set(names)].filter(isSecret).sort(), Object.keys(options).sort());
});

for (const [option, [holds, ...lines]] of Object.entries(options)) {
  test(`the file of ${option} is refused while others can read it`, async () => {
    await using d = await desk();
    await d.json('init --json');
    await d.json('keyring create r --json --private-key-out r.key');
    await writeFile(d.path('plain'), 'plain');
    assert.equal((await d.kms('encrypt --ring r --private-key r.key -o encrypted plain')).code, 0);
    await writeFile(d.path('cert.pem'), certificate);
    const file = d.path('secret');
    if (option === '--key-file') await copyFile(d.path('kms-data.master.key'), file);
    else if (option === '--private-key') await copyFile(d.path('r.key'), file);
    // Not a valid secret where a form is required, so that nothing starts to serve.
    else await writeFile(file, 'correct-horse-battery-staple');
    for (const line of lines) {
      const args = line.replace('FILE', 'secret');
      const before = await readdir(d.dir);
      for (const [mode, who, may] of [
        [0o640, 'its group', 'read'],
        [0o604, 'other users', 'read'],
        [0o644, 'other users', 'read'],
        [0o620, 'its group', 'write to'],
      ] as const) {
        await chmod(file, mode);
        const { code, stdout, stderr } = await d.kms(args);
        const is = `${file}: ${who} can ${may} it, and it holds ${holds} (mode 0${mode.toString(8)})`;
        if (line.startsWith('doctor')) {
          assert.equal(code, 1, stdout);
          assert.match(stdout, /key-exposed/);
          continue;
        }
        assert.equal(code, 1, `${args}: ${stderr}`);
        assert.ok(stderr.startsWith(`kms: ${is}; run: chmod 0600 ${file}; if anybody else may have read it, `), stderr);
        assert.equal(stderr.split('\n').length, 2);
        assert.doesNotMatch(stderr + stdout, /correct-horse/);
        assert.deepEqual(await readdir(d.dir), before, 'nothing is made');
      }
      await chmod(file, 0o600);
      if (line.startsWith(serving) && option === '--key-file') continue;
      const good = await d.kms(args);
      assert.doesNotMatch(good.stderr + good.stdout, /chmod|can (?:read|write to|reach) it/, args);
    }
  });
}

test('no command waits for a named pipe that nobody writes to', async () => {
  await using d = await desk();
  await d.json('init --json');
  await d.json('keyring create r --json --private-key-out r.key');
  await writeFile(d.path('plain'), 'plain');
  await d.kms('encrypt --ring r --private-key r.key -o encrypted plain');
  await writeFile(d.path('cert.pem'), certificate);
  execFileSync('mkfifo', ['-m', '600', d.path('pipe')]);
  await symlink('pipe', d.path('link'));
  const others = [
    'keyring list --server https://127.0.0.1:1 --ca-file FILE',
    'encrypt --ring r --recipient --public-key FILE plain',
    'activity verify --since FILE',
    'master list --key-file FILE',
    `${serving} --tls-cert FILE --tls-key r.key`,
    'init --store postgres://kms@127.0.0.1:1/kms?sslmode=verify-full&sslrootcert=DIR/FILE --data other',
    'init --store postgres://kms@127.0.0.1:1/kms?sslmode=verify-full&sslcert=DIR/cert.pem&sslkey=DIR/FILE --data other',
  ];
  const lines = [...Object.values(options).flatMap(([, ...lines]) => lines), ...others];
  for (const line of lines) {
    for (const name of ['pipe', 'link']) {
      const { code, stdout, stderr } = await d.kms(line.replaceAll('DIR', d.dir).replace('FILE', name));
      assert.notEqual(code, 0, line);
      assert.match(stdout + stderr, new RegExp(`${name}: expected a file with [^,]+, found a named pipe`), line);
    }
  }
  assert.match((await d.kms('doctor --tls-cert pipe --tls-key r.key')).stdout, /certificate-unreadable/);
  const env = { PGPASSFILE: d.path('pipe') };
  const { stderr } = await d.kms('init --store postgres://kms@127.0.0.1:1/kms --data other', { env });
  assert.match(stderr, /pipe: expected a file with passwords, found a named pipe/);
});

test('who is let in by an access list alone is nobody else', () => {
  const refused = (mode: number, me: { uid: number; groups: number[] }, uid = 0): boolean => {
    try {
      refuseExposed('/x', { mode, uid, gid: 0 }, 'a secret', 'make another', me);
      return false;
    } catch (error) {
      assert.ok(error instanceof KmsError && error.code === 'refused');
      return true;
    }
  };
  const service = { uid: 998, groups: [998] };
  // A credential as systemd makes it for a service's user: `-r--r-----+ root root`.
  assert.equal(refused(0o100440, service), false);
  assert.equal(refused(0o100444, service), true, 'everybody is let in');
  assert.equal(refused(0o100440, { uid: 998, groups: [998, 0] }), false, 'the group is its owner in all but name');
  assert.equal(refused(0o100440, { uid: 0, groups: [0] }), true);
  assert.equal(refused(0o100440, { uid: 0, groups: [1] }, 5), true, 'root is let in everywhere');
  assert.equal(refused(0o100440, { uid: 5, groups: [1] }, 5), true, 'the group is other people');
});
