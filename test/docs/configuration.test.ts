// The page about the configuration, held against the declaration of what can be configured; its sample is read as a
// server reads it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { readConfigFile } from '../../src/cli/config-file.ts';
import { type Kind, settingName } from '../../src/cli/grammar/declaration.ts';
import { settings } from '../../src/cli/grammar/serving.ts';
import { desk } from '../cli/kms.ts';

const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');

/** A table for each heading of the help. */
function tables(): string {
  const groups = Map.groupBy(settings, ([, { kind }]) => kind.group ?? '');
  return [...groups]
    .map(([heading, rows]) => {
      const lines = rows.map(([name, { kind }]) => rowOf(name, kind));
      return `### ${heading}\n| name | value | default | SIGHUP | meaning |\n|---|---|---|---|---|\n${lines.join('\n')}\n`;
    })
    .join('\n');
}

function rowOf(name: string, { placeholder, usual, isLive, isRepeated, about }: Kind<unknown>): string {
  const value = placeholder === undefined ? 'true or false' : isRepeated ? `list of ${placeholder}` : placeholder;
  const live = isLive === undefined ? '' : isLive === true ? 'yes' : 'another one';
  const what = about.replace(/--[a-z-]+/g, (option) => `\`${settingName(option)}\``);
  const cells = [`\`${name}\``, value, usual === undefined ? '' : `\`${usual}\``, live, what];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
    .replaceAll('|  |', '| |')
    .replaceAll('|  |', '| |');
}

test('the page has every setting as it is declared', () => {
  assert.equal(page.slice(page.indexOf('### ')), tables());
});

test('the sample is a configuration', async () => {
  await using d = await desk();
  const [, sample = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(page) ?? [];
  await writeFile(d.path('kms.yaml'), sample);
  const { given } = await readConfigFile(d.path('kms.yaml'), '');
  assert.ok(given.size >= 10);
  for (const [option, { value }] of given) {
    const kind = settings.get(settingName(option))?.kind;
    kind?.read(value, { name: option, io: { cwd: '/etc/kms' }, seeHelp: '' });
  }
});
