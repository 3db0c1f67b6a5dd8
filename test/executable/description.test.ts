// The API description is in the executable: the same that the sources make, with nothing beside it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeDescription } from '../../build/description.ts';
import { serve, workDirectory } from './kms.ts';

test('the document and the page come from the executable', async () => {
  const { url } = await serve(workDirectory());
  const { document, page, style, icon } = await makeDescription();
  const files = { '/openapi.json': document, '/docs': page, '/docs/style.css': style, '/docs/icon.svg': icon };
  for (const [path, text] of Object.entries(files)) {
    const answer = await fetch(url + path);
    assert.equal(answer.status, 200, path);
    assert.equal(await answer.text(), text, path);
  }
});
