// `kms upgrade` as typed, as far as it gets without an executable: wrong usage, refusals before anything is done, and
// the message about an interrupted upgrade. test/executable/upgrade.test.ts has the rest.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import test from 'node:test';
import { gzip, tar } from '../../build/archives.ts';
import { toHex, utf8 } from '../../src/crypto/bytes.ts';
import { ed25519PublicKey } from '../../src/crypto/ed25519.ts';
import { sha256 } from '../../src/crypto/hash.ts';
import { formatKeyPair, minisign } from '../../src/crypto/minisign.ts';
import { ownFormats, ownPlatform } from '../../src/upgrade/release.ts';
import { version } from '../../src/version.ts';
import { desk } from './kms.ts';

test('what is wrong is said before anything is done', async () => {
  await using d = await desk();
  const seed = new Uint8Array(32).fill(1);
  const key = { id: new Uint8Array(8), seed, key: ed25519PublicKey(seed) };
  writeFileSync(d.path('key.pub'), formatKeyPair(key).public);
  const program = utf8('a program');
  const files = [{ path: 'kms', bytes: program.length, sha256: toHex(sha256(program)) }];
  const manifest = utf8(
    JSON.stringify({ name: 'kms', version: '9.9.9', platform: ownPlatform, formats: ownFormats, files }),
  );
  const entries = [
    { path: 'kms', mode: 0o755, bytes: program },
    { path: 'manifest.json', mode: 0o644, bytes: manifest },
    { path: 'manifest.json.minisig', mode: 0o644, bytes: utf8(minisign(key, manifest, '')) },
  ];
  writeFileSync(d.path('release.tar.gz'), gzip(tar(entries, 0, 'kms-9.9.9/')));
  for (const [line, code, words] of [
    ['upgrade', 2, 'FILE is missing: the tarball of a release, or its executable'],
    ['upgrade release.tar.gz', 2, '--trusted-key is missing'],
    ['upgrade release.tar.gz --trusted-key key.pub --time-limit soon', 2, 'expected a duration'],
    ['upgrade release.tar.gz --resume', 2, '--resume takes no FILE'],
    ['upgrade --resume', 3, 'there is no data directory here'],
    ['upgrade release.tar.gz --trusted-key missing.pub', 1, 'missing.pub'],
    ['upgrade release.tar.gz --trusted-key release.tar.gz', 1, 'release.tar.gz'],
    ['upgrade key.pub --trusted-key key.pub', 1, 'manifest.json: there is no such file'],
    ['upgrade release.tar.gz --trusted-key key.pub', 1, 'this is not an executable of kms, but its sources'],
    ['--server https://kms.example upgrade release.tar.gz --trusted-key key.pub', 2, 'is upgraded where it runs'],
  ] as const) {
    const ran = await d.kms(line);
    assert.equal(ran.code, code, `${line}: ${ran.stderr}`);
    assert.ok(ran.stderr.includes(words), `${line}: ${ran.stderr}`);
    assert.equal(ran.stdout, '');
    assert.match(ran.stderr, /^kms: [^\n]+\n$/);
  }
});

test('what --status says', async () => {
  await using d = await desk();
  assert.deepEqual(await d.json('upgrade --status --json'), { upgrading: false, version });
  await d.kms('init');
  assert.equal((await d.kms('upgrade --resume')).stderr, 'kms: no upgrade was cut off: nothing to do\n');
  const journal = {
    ...{ format: 1, step: 'trying', token: 'secret', executable: '/usr/local/bin/kms', probes: [], service: {} },
    ...{ from: { version: '0.1.0' }, to: { version: '0.2.0' }, startedAt: '2026-01-02T03:04:05.000Z', backup: 'b' },
  };
  writeFileSync(d.path('kms-data', 'kms.upgrade'), JSON.stringify(journal), { mode: 0o600 });
  const { code, stdout } = await d.kms('upgrade --status');
  assert.equal(code, 0);
  assert.match(stdout, /^step +trying: starts the new version, which serves no client yet, and checks it$/m);
  assert.match(stdout, /^clients +are not served$/m);
  const shown = await d.json<Record<string, unknown>>('upgrade --status --json');
  assert.deepEqual([shown.upgrading, shown.step, shown.token], [true, 'trying', undefined]);
  const held = await d.kms('keyring list');
  assert.equal(held.code, 3);
  assert.match(held.stderr, /an upgrade is under way \(trying\).*`kms upgrade --resume` finishes one that was cut off/);
  assert.match((await d.kms('doctor')).stdout, /an upgrade is under way, or was cut off/);
  writeFileSync(d.path('kms-data', 'kms.upgrade'), 'torn');
  assert.equal((await d.kms('upgrade --status')).code, 1);
});
