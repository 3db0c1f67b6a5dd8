// The table of growing data names every endpoint that changes something, and no others.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { describedEndpoints } from '../../src/description/described-endpoints.ts';

const page = readFileSync(new URL('../../docs/threat-model.md', import.meta.url), 'utf8');

const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`;

test('what grows is said of every endpoint that could make something grow', () => {
  const [, rest = ''] = page.split('## What grows, and what bounds it\n');
  const [section = ''] = rest.split('\n## ');
  const named = new Set<string>();
  for (const line of section.split('\n').filter((each) => each.startsWith('|'))) {
    const [, first = ''] = line.split('|');
    for (const [, name = ''] of first.matchAll(/`([A-Z]+ \/[^`]+)`/g)) named.add(name);
  }
  const all = new Set<string>(describedEndpoints.map(({ endpoint }) => nameOf(endpoint)));
  assert.deepEqual(
    [...named].filter((name) => !all.has(name)),
    [],
  );
  const growing = describedEndpoints.map(({ endpoint }) => nameOf(endpoint)).filter((name) => !name.startsWith('GET '));
  assert.deepEqual(
    growing.filter((name) => !named.has(name)),
    [],
  );
});
