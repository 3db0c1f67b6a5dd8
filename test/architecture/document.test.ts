// The architecture page is a map: every file and folder that it names exists.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');

test('every file and folder that the page on the architecture names is there', () => {
  const named = [...page.matchAll(/`((?:src|docs|test)\/[^`\s]+|[\w.-]+\.(?:ts|tsx|md))`/g)].map(
    ([, name = '']) => name,
  );
  assert.ok(named.length > 30);
  for (const name of new Set(named)) {
    const pattern = name.replaceAll('<noun>', '*');
    const places = name.includes('/') ? [pattern] : [`src/**/${pattern}`, `docs/${pattern}`];
    assert.ok(globSync(places, { cwd: root }).length > 0, `docs/architecture.md names ${name}`);
  }
});
