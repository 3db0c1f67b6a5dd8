// Whole files are read up to a limit, and answers are parsed within one: a sparse file, or a server, costs its maker
// nothing. The type of the file port asks for the limit; this asks for it where there is no port.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, sources } from './imports.ts';

/** Files that the system or this program makes, or the user of the command alone. */
const own: Readonly<Record<string, readonly RegExp[]>> = {
  'src/cli/commands/upgrade.ts': [/readFile\('\/var\/lib\/dpkg\/info\/kms\.list'/],
  // Its callers name files of /proc.
  'src/cli/process-io.ts': [/readFileSync\(path, 'latin1'\)/],
  'src/doctor/machine.ts': [/readFile\(path, 'utf8'\)/],
  // The user's own directory of settings.
  'src/cli/default-tenants.ts': [/readFile\(tenantsPath\(io\), 'utf8'\)/],
  'src/cli/profiles.ts': [/file\.readFile\('utf8'\)/, /readFile\(defaultPath\(io\), 'utf8'\)/],
  'src/cli/seen-states.ts': [/readFile\(join\(dir, name\), 'utf8'\)/],
  'src/platform/authorities.ts': [/readFileSync\(environment\('SSL_CERT_FILE'\)/],
  'src/platform/program-files.ts': [/readFile\(createRequire\(import\.meta\.url\)/],
  // Only root can write it.
  'src/upgrade/files.ts': [/handle\.readFile\('utf8'\)/],
};

test('no file that others may have made is read whole without a limit', () => {
  for (const file of sources()) {
    if (file.startsWith('src/console/')) continue;
    const allowed = [/readFile(?:Sync)?\(\s*['`]\/proc\//, /readFile\((?:value: unknown|seal)\)/, ...(own[file] ?? [])];
    for (const [found] of codeOf(file).matchAll(/[\w.]*readFile(?:Sync)?\([^\n]*/g)) {
      assert.ok(
        allowed.some((each) => each.test(found)),
        `${file}: ${found}: readFileWithin of platform/node-files.ts has a limit`,
      );
    }
  }
});

test('answers are parsed by boundedJson alone', () => {
  const texts = sources().filter((file) => /\bboundedText\(/.test(codeOf(file)));
  // Metrics are no JSON.
  assert.deepEqual(texts.sort(), ['src/cli/commands/health.ts', 'src/client/bounded.ts']);
  for (const file of sources()) {
    if (file.startsWith('src/cli/') || file.startsWith('src/client/')) {
      assert.doesNotMatch(codeOf(file), /\.(?:json|text)\(\)/, `${file}: an answer is read without a limit`);
    }
  }
});
