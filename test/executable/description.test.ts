// The API description is in the executable, identical to that made from the sources, and needs no other files.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeDescription } from '../../build/description.ts';
import { serve, workDirectory } from './kms.ts';

test('the document and the pages come from the executable', async () => {
  const { url } = await serve(workDirectory());
  const { document, page, pages, style, script, icon } = await makeDescription();
  const files = {
    '/openapi.json': document,
    '/docs': page,
    '/docs/style.css': style,
    '/docs/script.js': script,
    '/docs/icon.svg': icon,
    ...Object.fromEntries(Object.entries(pages).map(([name, text]) => [`/docs/${name}`, text])),
  };
  assert.equal(Object.keys(files).length, 25);
  for (const [path, text] of Object.entries(files)) {
    const answer = await fetch(url + path);
    assert.equal(answer.status, 200, path);
    assert.equal(await answer.text(), text, path);
  }
});
