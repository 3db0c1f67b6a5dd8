// The console's pages are in the executable and served without other files.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve, workDirectory } from './kms.ts';

test('a page and all that it loads come from the executable', async () => {
  const { url } = await serve(workDirectory());
  const page = await fetch(`${url}/console/invite?token=x`);
  assert.equal(page.status, 200);
  const links = [...(await page.text()).matchAll(/(?:href|src)="([^"]+)"/g)].map(
    ([, link = '']) => new URL(link, `${url}/console/invite`),
  );
  const files = [...new Set(links.map(String))].filter((link) => link.includes('/static/'));
  assert.deepEqual(files.map((file) => file.slice(file.lastIndexOf('.'))).sort(), ['.css', '.js', '.svg']);
  for (const file of files) {
    assert.ok(file.startsWith(url), file);
    const answer = await fetch(file);
    assert.equal(answer.status, 200);
    assert.ok((await answer.text()).length > 100);
  }
});
