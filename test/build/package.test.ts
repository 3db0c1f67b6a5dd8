// The packages made from an executable: the same bytes each time, formats that other tools read, and a Debian package
// that starts nothing and deletes no keys. A few bytes stand in for the executable.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ar, tar } from '../../build/archives.ts';
import { maintainerOf, packages } from '../../build/package.ts';
import { ed25519PublicKey } from '../../src/crypto/ed25519.ts';
import { formatKeyPair, parsePublicKey, verifyMinisign } from '../../src/crypto/minisign.ts';
import { version } from '../../src/version.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-package-'));
after(() => rmSync(base, { recursive: true, force: true }));

const seed = new Uint8Array(32).fill(1);
const key = { id: new Uint8Array(8).fill(2), seed, key: ed25519PublicKey(seed) };
const trusted = parsePublicKey(formatKeyPair(key).public, 'key');

const file = (name: string): string => readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), 'utf8');

const parts = {
  version: '1.2.3-rc.1',
  arch: 'x64',
  executable: Buffer.from('not a program'),
  unit: file('docs/systemd/kms.service'),
  standbyUnit: file('docs/systemd/kms-standby.service'),
  manual: '.TH KMS 1\n',
  completions: { bash: 'bash', zsh: 'zsh', fish: 'fish' },
  licenses: 'licences',
  sbom: '{}',
  changelog: '# Changelog\n',
};
const options = { time: 1_700_000_000, revision: 2, maintainer: 'A Name <a@example.org>', key, compose: 'services:\n' };

const made = packages(parts, options);
const deb = 'kms_1.2.3~rc.1-2_amd64.deb';
const tarball = 'kms-1.2.3-rc.1-linux-x64.tar.gz';

function bytesOf(name: string): Uint8Array {
  const bytes = made.get(name);
  assert.ok(bytes, `${name} is missing among ${[...made.keys()]}`);
  return bytes;
}

/** A file of the Debian package, from one of the two archives in it. */
function inPackage(archive: 'control' | 'data', path: string): string {
  const bytes = Buffer.from(bytesOf(deb));
  const at = bytes.indexOf(`${archive}.tar.gz`) + 60;
  const length = Number(bytes.toString('latin1', at - 12, at - 2));
  writeFileSync(join(base, archive), bytes.subarray(at, at + length));
  return run('tar', 'xzOf', join(base, archive), `./${path}`);
}

function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } });
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

const dir = join(base, 'packages');
mkdirSync(dir);
for (const [name, bytes] of made) writeFileSync(join(dir, name), bytes);

test('what there is, and nothing else', () => {
  assert.deepEqual(
    [...made.keys()],
    [
      deb,
      tarball,
      'kms-1.2.3-rc.1-linux-x64.cdx.json',
      'compose.yaml',
      'manifest.json',
      'manifest.json.minisig',
      'SHA256SUMS',
      'SHA256SUMS.minisig',
    ],
  );
});

test('the same parts give the same bytes', () => {
  const again = packages(structuredClone(parts), options);
  for (const [name, bytes] of made) assert.ok(Buffer.from(bytes).equals(again.get(name) ?? Buffer.alloc(0)), name);
});

test('without a key there are the same files but for the signatures', () => {
  const unsigned = packages(parts, { ...options, key: undefined });
  assert.deepEqual(
    [...unsigned.keys()],
    [...made.keys()].filter((name) => !name.endsWith('.minisig')),
  );
  assert.deepEqual(unsigned.get('manifest.json'), made.get('manifest.json'));
});

test('manifest and checksums are signed, and name what there is', () => {
  for (const name of ['manifest.json', 'SHA256SUMS']) {
    const comment = verifyMinisign(trusted, bytesOf(name), String(bytesOf(`${name}.minisig`)), name);
    assert.equal(comment, `timestamp:1700000000\tfile:${name}\tkms 1.2.3-rc.1 linux-x64`);
  }
  const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
  const expected = [...made].filter(([name]) => !name.startsWith('SHA256SUMS'));
  assert.equal(String(bytesOf('SHA256SUMS')), expected.map(([name, bytes]) => `${sha256(bytes)}  ${name}\n`).join(''));
  const { files } = JSON.parse(String(bytesOf('manifest.json')));
  assert.deepEqual(files[0], { path: 'kms', bytes: 13, sha256: sha256(parts.executable) });
  run('sh', '-c', `cd ${dir} && sha256sum -c --quiet SHA256SUMS`);
});

test('tar reads the tarball: one directory, everything of root and of one time', () => {
  const lines = run('tar', 'tzvf', join(dir, tarball)).trimEnd().split('\n');
  for (const line of lines)
    assert.match(line, /^[-d]rw[-x]r-[-x]r-[-x] root\/root +\d+ 2023-11-14 22:13 kms-1\.2\.3-rc/);
  assert.ok(lines.some((line) => /^-rwxr-xr-x .*\/kms$/.test(line)));
  assert.equal(run('tar', 'xzOf', join(dir, tarball), 'kms-1.2.3-rc.1-linux-x64/kms'), 'not a program');
});

test('a name that does not fit is an error, not a shorter name', () => {
  assert.throws(() => tar([{ path: 'a'.repeat(101), mode: 0o644, bytes: Buffer.alloc(0) }], 0), /longer than the 100/);
});

test('the members of an ar archive begin at even places', () => {
  const bytes = ar(
    [
      ['a', Buffer.from('1')],
      ['b', Buffer.from('22')],
    ],
    5,
  );
  assert.equal(bytes.length, 8 + 60 + 2 + 60 + 2);
  assert.equal(bytes.toString('latin1', 68, 70), '1\n');
  assert.match(bytes.toString('latin1', 70), /^b {15}5 {11}0 {5}0 {5}100644 {2}2 {9}`\n22$/);
});

test('the unit of the package runs the executable of the package, and only where an appliance is', () => {
  const data = inPackage('data', 'usr/lib/systemd/system/kms.service');
  assert.match(data, /^ExecStart=\/usr\/bin\/kms serve$/m);
  assert.match(data, /^AssertPathExists=\/var\/lib\/kms\/data\/kms\.seal$/m);
  assert.doesNotMatch(data, /\/usr\/local/);
});

test('the package names who makes it, or the project', () => {
  assert.equal(maintainerOf({ DEBFULLNAME: 'A Name', DEBEMAIL: 'a@example.org' }), 'A Name <a@example.org>');
  assert.match(maintainerOf({ DEBFULLNAME: '' }), /^kms maintainers <noreply@[a-z]+(\.[a-z]+)+>$/);
  assert.doesNotMatch(maintainerOf({}), /localhost|invalid/);
});

test('a new key is made without building anything', () => {
  const path = join(base, 'new.key');
  const script = fileURLToPath(new URL('../../scripts/package', import.meta.url));
  const { status, stderr } = spawnSync(script, ['--new-key', path], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /build/);
  parsePublicKey(readFileSync(`${path}.pub`, 'utf8'), 'key');
});

test('the unit of a standby is in the package too, beside the other and not with it', () => {
  const data = inPackage('data', 'usr/lib/systemd/system/kms-standby.service');
  assert.match(data, /^ExecStart=\/usr\/bin\/kms standby --from (\S+)$/m);
  assert.match(data, /^Conflicts=kms\.service$/m);
  const [, from = ''] = /--from (\S+)$/m.exec(data) ?? [];
  for (const line of [`RequiresMountsFor=${from}`, `ReadWritePaths=${from}`])
    assert.ok(data.includes(`\n${line}\n`), line);
  assert.doesNotMatch(data, /\/usr\/local/);
});

test('the scripts of the package are sound, and none deletes data or keys', () => {
  for (const name of ['postinst', 'prerm', 'postrm']) {
    const text = inPackage('control', name);
    const path = join(base, name);
    writeFileSync(path, text);
    run('sh', '-n', path);
    assert.match(text, /^#!\/bin\/sh\nset -e\n/);
    // The texts for the administrator may mention it; no script does it.
    assert.doesNotMatch(text.replace(/<<'?END'?\n.*?\nEND\n/gs, ''), /\brm\b/);
  }
});

if (spawnSync('dpkg-deb', ['--version']).status !== 0) {
  process.stderr.write('kms: there is no dpkg-deb here: what it says of the Debian package is not looked at\n');
} else {
  test('dpkg-deb reads the package', () => {
    const path = join(dir, deb);
    assert.equal(
      run('dpkg-deb', '-f', path, 'Package', 'Version', 'Architecture', 'Maintainer').trimEnd(),
      ['Package: kms', 'Version: 1.2.3~rc.1-2', 'Architecture: amd64', 'Maintainer: A Name <a@example.org>'].join('\n'),
    );
    const root = join(base, 'root');
    run('dpkg-deb', '-R', path, root);
    assert.match(readFileSync(join(root, 'DEBIAN/md5sums'), 'utf8'), /^[0-9a-f]{32} {2}usr\/bin\/kms$/m);
    run('sh', '-c', `cd ${root} && md5sum -c --quiet DEBIAN/md5sums`);
    assert.equal(run('gzip', '-dc', join(root, 'usr/share/man/man1/kms.1.gz')), parts.manual);
    assert.match(
      run('gzip', '-dc', join(root, 'usr/share/doc/kms/changelog.Debian.gz')),
      /^kms \(1\.2\.3~rc\.1-2\) unstable; urgency=medium\n\n {2}\* .+\n\n -- A Name <a@example\.org> {2}Tue, 14 Nov 2023 22:13:20 \+0000\n$/,
    );
  });

  test('a version before another sorts before it', () => {
    run('dpkg', '--compare-versions', '1.2.3~rc.1-2', 'lt', '1.2.3-1');
    run('dpkg', '--compare-versions', '1.2.3-1', 'lt', '1.2.3-2');
  });
}

test('the compose file is for this version, and the volumes are those of the image', () => {
  const compose = file('compose.yaml');
  const image = file('Dockerfile');
  assert.match(compose, new RegExp(`^    image: kms:${version.replaceAll('.', '\\.')}$`, 'm'));
  const volumes = [...compose.matchAll(/^ {6}- \w+:(\/\S+)$/gm)].map(([, path]) => path);
  assert.deepEqual(JSON.parse(/^VOLUME (.+)$/m.exec(image)?.[1] ?? ''), volumes);
  const [, port] = /^EXPOSE (\d+)$/m.exec(image) ?? [];
  assert.match(compose, new RegExp(`^      - "127\\.0\\.0\\.1:${port}:${port}"$`, 'm'));
});
