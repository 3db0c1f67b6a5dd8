// A release is accepted only as its owner signed it, for this machine, and complete; everything else is refused with a
// reason, and no tarball entry is written anywhere else.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type Entry, gzip, tar } from '../../build/archives.ts';
import { packages } from '../../build/package.ts';
import { toHex, utf8 } from '../../src/crypto/bytes.ts';
import { ed25519PublicKey } from '../../src/crypto/ed25519.ts';
import { sha256 } from '../../src/crypto/hash.ts';
import { minisign } from '../../src/crypto/minisign.ts';
import { KmsError } from '../../src/errors.ts';
import { isBefore, olderFormat, ownFormats, ownPlatform, readRelease } from '../../src/upgrade/release.ts';

const base = mkdtempSync(join(tmpdir(), 'kms-release-'));
after(() => rmSync(base, { recursive: true, force: true }));

const keyOf = (byte: number) => {
  const seed = new Uint8Array(32).fill(byte);
  return { id: new Uint8Array(8).fill(byte), seed, key: ed25519PublicKey(seed) };
};
const key = keyOf(1);
const executable = utf8('a program');

const manifest = {
  name: 'kms',
  version: '9.8.7',
  platform: ownPlatform,
  formats: { 'the seal': 1 },
  files: [{ path: 'kms', bytes: executable.length, sha256: toHex(sha256(executable)) }],
};

const entry = (path: string, bytes: Uint8Array, mode = 0o644): Entry => ({ path, mode, bytes });

/** Entries of a tarball with this manifest. */
function entries(said: unknown = manifest, signer = key): Entry[] {
  const text = utf8(JSON.stringify(said));
  return [
    entry('top/kms', executable, 0o755),
    entry('top/manifest.json', text),
    entry('top/manifest.json.minisig', utf8(minisign(signer, text, 'a release'))),
  ];
}

let files = 0;
function written(bytes: Uint8Array): string {
  const path = join(base, `release-${files++}`);
  writeFileSync(path, bytes);
  return path;
}

const packed = (of: readonly Entry[]): string => written(gzip(tar(of, 0)));

async function refused(path: string, words: RegExp): Promise<void> {
  await assert.rejects(readRelease(path, key), (error) => {
    assert.ok(error instanceof KmsError, String(error));
    assert.equal(error.code, 'refused');
    assert.match(error.message, words);
    assert.ok(error.hint, error.message);
    return true;
  });
}

test('a tarball, and the executable beside its manifest', async () => {
  const { manifest: said, executable: bytes } = await readRelease(packed(entries()), key);
  assert.deepEqual(said, manifest);
  assert.deepEqual(Buffer.from(bytes), Buffer.from(executable));
  const dir = join(base, 'unpacked');
  mkdirSync(dir);
  for (const { path, bytes: content = utf8('') } of entries())
    writeFileSync(join(base, 'unpacked', path.slice(4)), content);
  assert.deepEqual((await readRelease(join(dir, 'kms'), key)).manifest, manifest);
  writeFileSync(join(dir, 'kms'), 'a pr0gram');
  await refused(join(dir, 'kms'), /the executable is not the one that the manifest names/);
  rmSync(join(dir, 'manifest.json.minisig'));
  await refused(join(dir, 'kms'), /manifest\.json\.minisig: there is no such file/);
});

test('what ./scripts/package makes', async () => {
  const text = { unit: '', standbyUnit: '', manual: '', licenses: '', sbom: '', changelog: '' };
  const parts = {
    ...text,
    version: '9.8.7',
    arch: process.arch,
    executable,
    completions: { bash: '', zsh: '', fish: '' },
  };
  const made = packages(parts, { time: 0, revision: 1, maintainer: 'A <a@example.org>', key, compose: '' });
  const tarball = made.get(`kms-9.8.7-linux-${process.arch}.tar.gz`) ?? utf8('');
  const { manifest: said } = await readRelease(written(tarball), key);
  assert.deepEqual(said.formats, ownFormats);
  assert.equal(said.version, '9.8.7');
});

test('a Debian package is what apt installs', async () => {
  await refused(written(Buffer.from('!<arch>\ndebian-binary   0')), /is a Debian package/);
});

test('the tarball that tar makes, with longer names as pax and GNU have them', async () => {
  const dir = join(base, 'by-tar', 'top');
  mkdirSync(dir, { recursive: true });
  for (const { path, bytes = utf8('') } of entries()) writeFileSync(join(base, 'by-tar', path), bytes);
  writeFileSync(join(dir, 'n'.repeat(200)), 'long');
  for (const format of ['pax', 'gnu', 'ustar']) {
    const path = join(base, `${format}.tar.gz`);
    const without = format === 'ustar' ? ['--exclude=nnn*'] : [];
    execFileSync('tar', ['czf', path, `--format=${format}`, ...without, '-C', join(base, 'by-tar'), 'top']);
    assert.equal((await readRelease(path, key)).manifest.version, '9.8.7');
  }
});

test('signed by somebody else, not signed, for another machine, no manifest of this kind', async () => {
  await refused(
    packed(entries(manifest, keyOf(2))),
    /signed by the key 0202020202020202, and 0101010101010101 is trust/,
  );
  await refused(packed(entries(manifest, { ...keyOf(2), id: key.id })), /the signature does not match/);
  await refused(packed(entries().slice(0, 2)), /is not signed/);
  await refused(
    packed(entries({ ...manifest, platform: 'linux-vax' })),
    /is for linux-vax, but this machine is linux-/,
  );
  for (const said of [
    [],
    'kms',
    { ...manifest, name: 'other' },
    { ...manifest, version: '../1' },
    { ...manifest, files: [5] },
  ]) {
    await refused(packed(entries(said)), /is not a manifest that this program reads/);
  }
  const grown = [{ path: 'kms', bytes: executable.length + 1, sha256: toHex(sha256(executable)) }];
  for (const list of [[], grown, [{ ...manifest.files[0], sha256: '0'.repeat(64) }]]) {
    await refused(packed(entries({ ...manifest, files: list })), /the executable is not the one/);
  }
});

test('cut off anywhere, in the packed or in the unpacked form, and with one byte changed', async () => {
  const plain = tar(entries(), 0);
  const whole = gzip(plain);
  for (let length = 2; length < whole.length; length += 7)
    await refused(written(whole.subarray(0, length)), /release-/);
  for (let length = 0; length < plain.length - 1024; length += 100) {
    await refused(written(gzip(plain.subarray(0, length))), /ends in the middle/);
  }
  for (let at = 2; at < whole.length; at += 5) {
    const changed = Buffer.from(whole);
    changed.writeUInt8((changed[at] ?? 0) ^ 0x01, at);
    // An unused bit of the gzip header may change; signed content may not.
    const read = await readRelease(written(changed), key).catch((error) => error);
    if (!(read instanceof Error)) assert.deepEqual(read.manifest, manifest);
    else assert.ok(read instanceof KmsError && read.code === 'refused', String(read));
  }
});

test('links, devices, paths that lead elsewhere, two of a name: nothing of them is used, nothing is written', async () => {
  const before = readdirSync(base);
  const [program, ...signed] = entries();
  assert.ok(program);
  const typed = (path: string, type: string): Buffer => {
    const bytes = tar([entry(path, new Uint8Array(0))], 0).subarray(0, 512);
    bytes.write(type, 156);
    bytes.write('/etc/passwd', 157);
    bytes.write('        ', 148);
    const sum = bytes.reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return bytes;
  };
  const rest = tar(signed, 0);
  for (const type of ['1', '2', '3', '6']) {
    await refused(
      written(gzip(Buffer.concat([typed('top/kms', type), rest]))),
      /expected kms and manifest\.json in it/,
    );
  }
  for (const path of ['../kms', '/kms', '../../kms', 'top/../kms', 'a/b/kms', 'kms']) {
    const made = packed([{ ...program, path }, ...signed]);
    // The three may be in one directory of any name: if it is `..`, no path is followed.
    if (path === '../kms') assert.equal((await readRelease(made, key)).manifest.version, '9.8.7');
    else await refused(made, /expected kms and manifest\.json in it/);
  }
  await refused(packed([program, ...entries()]), /has two files kms/);
  assert.deepEqual(
    readdirSync(base).filter((name) => !/^release-/.test(name)),
    before.filter((name) => !/^release-/.test(name)),
  );
});

test('no file, a directory, a pipe, an empty file, and something else that was packed', async () => {
  await refused(join(base, 'missing'), /there is no such file/);
  await refused(base, /expected a file/);
  const pipe = join(base, 'pipe');
  execFileSync('mkfifo', [pipe]);
  await refused(pipe, /expected a file/);
  await refused(written(utf8('')), /manifest\.json: there is no such file/);
  await refused(written(gzip(Buffer.alloc(2000, 'x'))), /is not a tarball/);
});

test('a version that cannot open what this one wrote is found by its formats', () => {
  const release = { ...manifest, name: 'kms', formats: ownFormats } as const;
  assert.equal(olderFormat(release), undefined);
  const newer = Object.fromEntries(Object.entries(ownFormats).map(([what, format]) => [what, format + 1]));
  assert.equal(olderFormat({ ...release, formats: newer }), undefined);
  for (const [what, format] of Object.entries(ownFormats)) {
    const formats = { ...ownFormats, [what]: format - 1 };
    const reason = `version 9.8.7 reads ${what} up to format ${format - 1}, and this appliance has format ${format}`;
    assert.equal(olderFormat({ ...release, formats }), reason);
  }
});

test('which of two versions comes before the other', () => {
  const ascending = ['0.0.9', '0.1.0-rc.1', '0.1.0', '0.1.1', '0.2', '0.10.0', '1.0.0-beta', '1.0.0', '1.0.1', '10'];
  for (const [at, version] of ascending.entries()) {
    for (const [place, other] of ascending.entries()) {
      assert.equal(isBefore(version, other), at < place, `${version} ${other}`);
    }
  }
  assert.equal(isBefore('1.0.0+build', '1.0.0'), false);
  assert.equal(isBefore('1.0', '1.0.0'), false);
});
