// The unit files: only options that this program knows, no mistakes that systemd reports, and an exposure no worse than
// has been reached before.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { desk } from '../cli/kms.ts';

const read = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../docs/systemd/${name}`, import.meta.url)), 'utf8');
const units = ['kms.service', 'kms-standby.service'].map((name) => ({ name, unit: read(name) }));
const dir = mkdtempSync(join(tmpdir(), 'kms-unit-'));
after(() => rmSync(dir, { recursive: true, force: true }));

/** Out of 10. */
const mostExposure = 1.5;

function analyze(...args: readonly string[]): { code: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
  return { code: status, text: `${stdout ?? ''}${stderr ?? ''}` };
}

for (const { name, unit } of units) {
  const command = name === 'kms.service' ? 'serve' : 'standby';
  test(`each option of ${name} is one of \`kms ${command}\``, async () => {
    await using d = await desk();
    const { stdout: help } = await d.kms(`${command} --help`);
    const names = [...unit.matchAll(/\bKMS_([A-Z_]+)=/g)].map(([, found = '']) => found);
    assert.ok(names.length >= 4);
    for (const found of names) {
      const option = `--${found.toLowerCase().replaceAll('_', '-')}`;
      assert.ok(help.includes(option), option);
    }
  });

  test(`key and state are where the program looks for them: ${name}`, () => {
    assert.match(unit, /^LoadCredential=kms-master-key:/m);
    assert.match(unit, /^StateDirectory=kms$/m);
    assert.match(unit, /^Environment=KMS_DATA=\/var\/lib\/kms\//m);
    assert.match(unit, new RegExp(`^ExecStart=/usr/local/bin/kms ${command}( --from \\S+)?$`, 'm'));
  });
}

const version = Number(/^systemd (\d+)/.exec(analyze('--version').text)?.[1] ?? 0);
if (version < 250) {
  process.stderr.write(
    'kms: there is no systemd-analyze here that looks at files: the tests of the unit with it are not run\n',
  );
} else {
  for (const { name, unit } of units) {
    const file = join(dir, name);
    // systemd-analyze requires the program to exist.
    writeFileSync(file, unit.replace('/usr/local/bin/kms', '/bin/true'));

    test(`systemd-analyze verify has nothing to say of ${name}`, () => {
      assert.deepEqual(analyze('verify', '--man=no', file), { code: 0, text: '' });
    });

    test(`systemd-analyze security of ${name}: at most ${mostExposure}`, () => {
      const { code, text } = analyze(
        'security',
        '--offline=true',
        '--no-pager',
        `--threshold=${mostExposure * 10}`,
        file,
      );
      assert.equal(code, 0, text);
      const [, level] = /Overall exposure level for \S+: ([0-9.]+)/.exec(text) ?? [];
      assert.ok(Number(level) <= mostExposure, text);
    });
  }
}
