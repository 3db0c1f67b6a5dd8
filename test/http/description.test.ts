// The API description over the wire: public, the same for everyone, under a strict content security policy, and
// unavailable while sealed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescriptionFiles } from '../../src/model/program-files.ts';
import { testAppliance } from '../support/appliance.ts';

const bytes = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(new TextEncoder().encode(text));
const files: DescriptionFiles = {
  document: bytes('{}'),
  page: bytes('<p>'),
  pages: new Map([['encryption', bytes('<h1>')]]),
  style: bytes('p{}'),
  script: bytes('0'),
  icon: bytes('<svg/>'),
};
const descriptionFiles = (): Promise<DescriptionFiles> => Promise.resolve(files);
const paths = ['/openapi.json', '/docs', '/docs/encryption', '/docs/style.css', '/docs/script.js', '/docs/icon.svg'];

test('it needs no credential, and says of each file what it is', async () => {
  const a = await testAppliance({ descriptionFiles });
  const types: string[] = [];
  for (const path of paths) {
    const answer = await a.app.fetch(new Request(`http://kms.test${path}`), {});
    assert.equal(answer.status, 200);
    types.push(answer.headers.get('content-type') ?? '');
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    assert.notEqual(await answer.text(), '');
    const head = await a.app.fetch(new Request(`http://kms.test${path}`, { method: 'HEAD' }), {});
    assert.deepEqual([head.status, await head.text()], [200, '']);
  }
  assert.deepEqual(types, [
    'application/json',
    'text/html; charset=utf-8',
    'text/html; charset=utf-8',
    'text/css; charset=utf-8',
    'text/javascript; charset=utf-8',
    'image/svg+xml',
  ]);
  assert.deepEqual(await a.activity(), [], 'nothing of it is recorded');
});

test('the pages may load their style sheet, script and icon and ask this appliance, and nothing else', async () => {
  const a = await testAppliance({ descriptionFiles });
  for (const path of ['/docs', '/docs/encryption']) {
    const { headers } = await a.app.fetch(new Request(`http://kms.test${path}`), {});
    assert.equal(
      headers.get('content-security-policy'),
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    assert.equal(headers.get('referrer-policy'), 'no-referrer');
  }
});

test('another method is 405 with Allow', async () => {
  const a = await testAppliance({ descriptionFiles });
  for (const path of paths) {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const { status, headers, body } = await a.call(method, path, undefined, { key: null });
      assert.deepEqual([status, headers.get('allow'), Object.keys(body)], [405, 'GET, HEAD', ['message']]);
    }
  }
  for (const path of ['/docs/', '/docs/x', '/docs/constructor', '/docs/a/b', '/openapi', '/openapi.yaml'])
    assert.equal((await a.call('GET', path)).status, 404);
});

test('sealed it is 503, except for what the guides need, and 404 for a host that no tenant answers', async () => {
  const sealed = await testAppliance({ descriptionFiles, sealed: () => true });
  const a = await testAppliance({ descriptionFiles, tenants: [{ name: 'one', hosts: ['one.example'] }] });
  for (const path of paths) {
    const answer = await sealed.app.fetch(new Request(`http://kms.test${path}`), {});
    const isOfGuides = path === '/docs/style.css' || path === '/docs/icon.svg';
    assert.equal(answer.status, isOfGuides ? 200 : 503, path);
    if (!isOfGuides) assert.match(await answer.text(), /sealed/);
    assert.equal((await a.call('GET', path, undefined, { key: null, host: 'two.example' })).status, 404);
    assert.equal((await a.app.fetch(new Request(`http://one.example${path}`), {})).status, 200);
  }
});
