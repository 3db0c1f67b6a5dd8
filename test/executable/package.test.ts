// Packages of the built executable: identical bytes when made twice, whatever the time zone, the directory and the
// umask; and signatures that minisign accepts, and refuses after a change.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { version } from '../../src/version.ts';
import { workDirectory } from './kms.ts';

const dir = workDirectory();
const program = fileURLToPath(new URL('../../build/package.ts', import.meta.url));
const key = join(dir, 'release.key');

function makePackages(args: readonly string[], env: Readonly<Record<string, string>> = {}, umask = '022'): string {
  const { status, stderr } = spawnSync(
    'sh',
    ['-c', `umask ${umask}; exec "$0" "$@"`, process.execPath, program, ...args],
    { cwd: dir, env: { PATH: process.env.PATH, HOME: dir, SOURCE_DATE_EPOCH: '1700000000', ...env }, encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
  return stderr;
}

makePackages(['--new-key', key]);
makePackages(['--signing-key', key, '--out', join(dir, 'first')]);
const first = readdirSync(join(dir, 'first'));

test('two runs give the same bytes', () => {
  makePackages(['--out', 'second'], { TZ: 'Asia/Tokyo', LANG: 'C', KMS_SIGNING_KEY: readFileSync(key, 'utf8') }, '077');
  assert.deepEqual(readdirSync(join(dir, 'second')), first);
  for (const name of first) {
    assert.ok(readFileSync(join(dir, 'first', name)).equals(readFileSync(join(dir, 'second', name))), name);
  }
});

test('checksums fit, and the executable in the tarball runs', () => {
  execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: join(dir, 'first') });
  const stem = `kms-${version}-linux-${process.arch}`;
  execFileSync('tar', ['xzf', join('first', `${stem}.tar.gz`)], { cwd: dir });
  assert.equal(execFileSync(join(dir, stem, 'kms'), ['--version'], { encoding: 'utf8' }), `${version}\n`);
});

test('without a key nothing is signed, and that is said', () => {
  assert.match(
    makePackages(['--out', 'unsigned']),
    /^kms: not signed: give a secret key of minisign with --signing-key/m,
  );
  assert.ok(!readdirSync(join(dir, 'unsigned')).some((name) => name.endsWith('.minisig')));
});

test('a key is not overwritten, and a wrong option is said', () => {
  for (const [args, words] of [
    [['--new-key', key], /EEXIST/],
    [['--revision', 'x'], /expected a whole number/],
    [['--signing-key', `${key}.pub`], /expected a secret key of minisign/],
  ] as const) {
    const { status, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
    assert.equal(status, 1);
    assert.match(stderr, words);
    assert.equal(stderr.split('\n').length, 2, stderr);
  }
});

const minisign = process.env.KMS_MINISIGN || 'minisign';
const [known] = /^minisign [\d.]+/.exec(spawnSync(minisign, ['-v'], { encoding: 'utf8' }).stdout ?? '') ?? [];
if (known === undefined) {
  process.stderr.write('kms: no minisign here (KMS_MINISIGN names one): signatures are not verified from outside\n');
} else {
  const verify = (file: string) =>
    spawnSync(minisign, ['-V', '-m', file, '-p', `${key}.pub`], { cwd: join(dir, 'first'), encoding: 'utf8' });

  for (const name of ['manifest.json', 'SHA256SUMS']) {
    test(`${known} verifies ${name}, and refuses it with one byte more`, () => {
      const { status, stdout, stderr } = verify(name);
      assert.equal(status, 0, stderr);
      assert.match(stdout, new RegExp(`Trusted comment: timestamp:1700000000\\tfile:${name}\\tkms ${version} linux-`));
      const changed = `changed-${name}`;
      copyFileSync(join(dir, 'first', name), join(dir, 'first', changed));
      copyFileSync(join(dir, 'first', `${name}.minisig`), join(dir, 'first', `${changed}.minisig`));
      appendFileSync(join(dir, 'first', changed), '\n');
      assert.equal(verify(changed).status, 1);
    });
  }

  test(`${known} signs with the key that was made here`, () => {
    copyFileSync(join(dir, 'first', 'compose.yaml'), join(dir, 'first', 'mine'));
    execFileSync(minisign, ['-S', '-s', key, '-m', join(dir, 'first', 'mine')], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    assert.equal(verify('mine').status, 0);
  });
}
