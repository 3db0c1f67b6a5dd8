// The console's pages beside the endpoints: while sealed, for several tenants, without credentials, and which requests
// are recorded.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConsoleFile, ConsoleFiles } from '../../src/model/program-files.ts';
import { testAppliance } from '../support/appliance.ts';

const file = (name: string): ConsoleFile => ({ name, contentType: 'text/plain', content: new Uint8Array([65]) });
const files: ConsoleFiles = { script: file('s.js'), style: file('s.css'), icon: file('i.svg') };
const consoleFiles = (): Promise<ConsoleFiles> => Promise.resolve(files);

test('sealed, pages answer 503: as a page for a browser, as JSON for the rest; the files stay', async () => {
  const a = await testAppliance({ consoleFiles, sealed: () => true });
  for (const path of ['/console', '/console/invite', '/console/x']) {
    const { status, body } = await a.call('GET', path, undefined, { key: null });
    assert.equal(status, 503);
    assert.match(body.message, /sealed/);
    const shown = await a.app.fetch(new Request(`http://kms.test${path}`, { headers: { accept: 'text/html' } }), {});
    assert.equal(shown.status, 503);
    const text = await shown.text();
    assert.match(text, /<main data-state="sealed">\n<h1>The service is sealed<\/h1>/);
    assert.match(text, /<script type="module" src="(?:\.\.\/)*(?:\.\/)?console\/static\/s\.js">/);
  }
  assert.equal((await a.app.fetch(new Request('http://kms.test/console/static/s.css'), {})).status, 200);
});

test('each host that a tenant answers has the pages, no other has', async () => {
  const tenants = [
    { name: 'one', hosts: ['one.example'] },
    { name: 'two', hosts: ['two.example'] },
  ];
  const a = await testAppliance({ consoleFiles, tenants });
  const status = async (host: string): Promise<number> =>
    (await a.app.fetch(new Request('http://kms.test/console/invite', { headers: { host } }), {})).status;
  assert.deepEqual(
    await Promise.all(['one.example', 'TWO.example:8080', 'three.example'].map(status)),
    [200, 200, 404],
  );
});

test('a page says whether there is a user yet, and nothing else of who there is', async () => {
  const a = await testAppliance({ consoleFiles });
  const page = async (path: string): Promise<string> =>
    (await a.app.fetch(new Request(`http://kms.test${path}`), {})).text();
  assert.match(await page('/console'), /<main data-state="new">/);
  await a.call('POST', '/auth/users', { username: 'ada', email: 'a@b.c', firstName: 'Ada', lastName: 'L' });
  const one = await page('/console');
  assert.match(one, /<main>/);
  await a.call('POST', '/auth/users', { username: 'bob', email: 'b@b.c', firstName: 'Bob', lastName: 'L' });
  assert.equal(await page('/console'), one);
});

test('a token in the address of a page is in no log and no answer', async () => {
  const a = await testAppliance({ consoleFiles });
  const token = 'kmsin_0123456789012345678901234567890123456789012';
  for (const path of ['/console/invite', '/console/reset', '/console', '/console/nowhere', `/console/${token}`]) {
    const answer = await a.app.fetch(new Request(`http://kms.test${path}?token=${token}`), {});
    assert.ok(!(await answer.text()).includes(token));
  }
  assert.equal(a.log.length, 5);
  assert.ok(!a.log.join('').includes(token));
});
