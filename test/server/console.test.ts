// The console's files over the wire: content types, security policies, caching, and unknown paths.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { consolePages } from '../../src/api/console-pages.ts';
import { serve } from '../../src/server/serve.ts';

const dir = mkdtempSync(join(tmpdir(), 'kms-console-'));
const serving = await serve({
  data: join(dir, 'data'),
  listen: '127.0.0.1:0',
  logLevel: 'silent',
  hosts: ['127.0.0.1'],
});
after(async () => {
  await serving.close();
  rmSync(dir, { recursive: true, force: true });
});

const ask = (path: string, init: RequestInit = {}): Promise<Response> => fetch(serving.url + path, init);
const asBrowser = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } };
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** The addresses of a page's files. */
async function filesOf(path: string): Promise<string[]> {
  const html = await (await ask(path)).text();
  const links = [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, link = '']) => new URL(link, serving.url + path));
  return [...new Set(links.map(({ pathname }) => pathname))].filter((each) => each.includes('/static/'));
}

test('each page is public HTML under a strict policy, in no cache, and tells nobody its address', async () => {
  for (const path of [
    ...Object.values(consolePages).map((page) => page.path),
    '/console/',
    '/console/invite?token=x',
    '/console/users/a%2Fb%20c',
    '/console/keyrings/payroll?x=y',
  ]) {
    const answer = await ask(path);
    const html = await answer.text();
    assert.equal(answer.status, 200, path);
    assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(answer.headers.get('content-security-policy'), policy);
    assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    assert.doesNotMatch(html, /<style|style=|<script(?! type="module" src=)|\son\w+=|token/);
  }
});

test('the files of a page are the same for all pages, have names that change, and are kept by caches', async () => {
  const files = await filesOf('/console');
  assert.equal(files.length, 3);
  for (const { path } of Object.values(consolePages)) assert.deepEqual(await filesOf(path), files, path);
  assert.deepEqual(await filesOf('/console/'), files);
  const types: Record<string, string> = {
    js: 'text/javascript; charset=utf-8',
    css: 'text/css; charset=utf-8',
    svg: 'image/svg+xml',
  };
  for (const file of files) {
    const answer = await ask(file);
    assert.match(file, /-[0-9a-f]{16}\.(?:js|css|svg)$/);
    assert.equal(answer.headers.get('content-type'), types[file.slice(file.lastIndexOf('.') + 1)]);
    assert.equal(answer.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    assert.ok((await answer.text()).length > 100);
    const etag = answer.headers.get('etag') ?? '';
    const again = await ask(file, { headers: { 'if-none-match': etag } });
    assert.deepEqual([again.status, await again.text(), again.headers.get('etag')], [304, '', etag]);
    const head = await ask(file, { method: 'HEAD' });
    assert.deepEqual([head.status, await head.text()], [200, '']);
  }
});

test('what is no page is 404: a page for a browser, JSON for the rest', async () => {
  for (const path of [
    '/console/x',
    '/console/static',
    '/console/static/',
    '/console/static/x.js',
    '/console/invite/x',
  ]) {
    const plain = await ask(path);
    assert.equal(plain.status, 404, path);
    assert.deepEqual(Object.keys(await plain.json()), ['message']);
    if (path.endsWith('.js')) continue;
    const shown = await ask(path, asBrowser);
    assert.deepEqual([shown.status, shown.headers.get('content-type')], [404, 'text/html; charset=utf-8']);
    assert.match(await shown.text(), /<h1>Page not found<\/h1>/);
  }
  assert.equal((await ask('/consoles')).status, 404);
});

test('pages are read, not written to', async () => {
  for (const path of ['/console', '/console/invite', '/console/static/x.js']) {
    const answer = await ask(path, { method: 'POST' });
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD']);
    assert.deepEqual(Object.keys(await answer.json()), ['message']);
  }
  assert.equal((await ask('/console/x', { method: 'POST' })).status, 404);
});

test('a host that no tenant answers has no pages', async () => {
  const at = (headers: Record<string, string>): Promise<Response> =>
    Promise.resolve(serving.appliance.app.fetch(new Request('http://other.example/console', { headers }), {}));
  assert.deepEqual(
    [(await at({})).status, (await (await at({})).json()).message],
    [404, 'no tenant answers this host'],
  );
  assert.equal((await at({ accept: 'text/html' })).status, 404);
});

test('the bare address leads browsers to the console, and is no path to anybody else', async () => {
  const answer = await ask('/', { ...asBrowser, redirect: 'manual' });
  assert.equal(answer.status, 302);
  assert.equal(new URL(answer.headers.get('location') ?? '', `${serving.url}/`).pathname, '/console');
  assert.equal((await ask('/')).status, 404);
  assert.equal((await ask('/', { ...asBrowser, method: 'POST' })).status, 404);
});
