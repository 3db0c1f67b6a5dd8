// The tables of operations and attributes in the guide are those of the code, and so are the settings of each product.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { kmipSettings } from '../../src/cli/kmip-settings.ts';
import { attributeRules } from '../../src/dialects/kmip/attribute-rules.ts';
import { operations } from '../../src/dialects/kmip/operations.ts';

const guide = new URL('../../docs/guide-kmip.md', import.meta.url);
const versionText = (version: number): string => `${Math.floor(version / 10)}.${version % 10}`;

const tables: Readonly<Record<string, readonly string[]>> = {
  Operations: [
    '| operation | since | in the activity log |',
    '|---|---|---|',
    ...operations.map(({ name, since, action }) => `| ${name} | ${versionText(since)} | \`${action}\` |`),
  ],
  Attributes: [
    '| attribute | versions | changes | several |',
    '|---|---|---|---|',
    ...attributeRules.map(({ name, since, until, changes, isMany }) => {
      const versions = `${versionText(since)}${until === undefined ? ' on' : ` to before ${versionText(until)}`}`;
      return `| ${name} | ${versions} | ${changes} | ${isMany ? 'yes' : ''} |`;
    }),
    '| x-… and y-… (vendor attributes from 2.0 on) | 1.0 on | free | yes |',
  ],
};

/** The page with the table under each of those headings as it is made here. */
function withTables(text: string): string {
  return Object.entries(tables).reduce((page, [heading, lines]) => {
    const from = page.indexOf('\n| ', page.indexOf(`\n## ${heading}\n`)) + 1;
    const table = /^(?:\|.*\n)+/.exec(page.slice(from))?.[0];
    assert.ok(from > 0 && table !== undefined, heading);
    return `${page.slice(0, from)}${lines.join('\n')}\n${page.slice(from + table.length)}`;
  }, text);
}

test('the guide has the operations and attributes that there are', () => {
  const text = readFileSync(guide, 'utf8');
  const whole = withTables(text);
  if (process.env.KMS_WRITE_GUIDE) writeFileSync(guide, whole);
  else assert.equal(text, whole, 'KMS_WRITE_GUIDE=1 node --test test/dialects/kmip-guide.test.ts writes it');
});

test('the page of settings is what a client gets in a file', () => {
  const page = new URL('../../docs/kmip-settings.md', import.meta.url);
  const text = readFileSync(page, 'utf8');
  const [introduction] = text.split('\n## ');
  const place = { host: 'kms.example', port: 5696, name: 'san' };
  const whole = `${introduction?.trimEnd()}\n\n${kmipSettings(place)}`;
  if (process.env.KMS_WRITE_GUIDE) writeFileSync(page, whole);
  else assert.equal(text, whole, 'KMS_WRITE_GUIDE=1 node --test test/dialects/kmip-guide.test.ts writes it');
});
