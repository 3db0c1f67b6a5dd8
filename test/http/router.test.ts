// The router matches the declared paths, in their order, and decodes them as Hono does, on which the first releases of
// this API were built: both find the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Hono } from 'hono';
import type { ApiRequest } from '../../src/http/request.ts';
import { queryOf } from '../../src/http/request.ts';
import { Router } from '../../src/http/router.ts';

const paths = [
  { method: 'GET', path: '/' },
  { method: 'POST', path: '/ks/encrypt' },
  { method: 'GET', path: '/ks/hash/{hash}' },
  { method: 'DELETE', path: '/ks/keyrings/{name}' },
  { method: 'GET', path: '/ks/keyrings/{name}/keys/{key}' },
  { method: 'POST', path: '/assets/search' },
  { method: 'GET', path: '/assets/{id}' },
  { method: 'GET', path: '/auth/refresh', noHead: true },
  { method: 'GET', path: '/local/status', local: true as const },
];
const router = new Router(paths);

const hono = new Hono();
for (const [index, { method, path }] of paths.entries()) {
  hono.on(method, path.replaceAll('{', ':').replaceAll('}', ''), (c) => c.json([index, c.req.param(), c.req.query()]));
}
hono.notFound((c) => c.json([-1]));

/** Any path segment that URLs can have. */
const segment = fc.oneof(
  fc.constantFrom(
    'ks',
    'encrypt',
    'hash',
    'keyrings',
    'keys',
    'assets',
    'a',
    '',
    '%',
    '%2',
    '%2F',
    '%25',
    '%e4',
    '%C3%A4',
  ),
  fc.string({ unit: fc.constantFrom(...'ab%2F5c3A.~+ä漢/?#&='), maxLength: 8 }),
);
const target = fc
  .tuple(
    fc.array(segment, { maxLength: 6 }),
    fc.option(fc.string({ unit: fc.constantFrom(...'ab=&%2F+ä'), maxLength: 12 })),
  )
  .map(([segments, query]) => new URL(`http://host/${segments.join('/')}${query === null ? '' : `?${query}`}`));

test('it finds what Hono does, with the same parameters and query', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('GET', 'POST', 'DELETE'), target, async (method, { href, pathname, search }) => {
      const [index, params, query]: [number, object?, object?] = await (await hono.request(href, { method })).json();
      const found = router.find(method, pathname);
      // A literal path is never matched by a pattern.
      if (pathname === '/assets/search' && method !== 'POST') return assert.equal(found, undefined);
      assert.equal(found ? paths.indexOf(found.served as (typeof paths)[number]) : -1, index, href);
      if (!found) return;
      assert.deepEqual({ ...found.params }, params, href);
      assert.deepEqual({ ...queryOf({ search } satisfies Pick<ApiRequest, 'search'>) }, query, href);
    }),
    { numRuns: 2000 },
  );
});

test('HEAD is GET where that changes nothing', () => {
  assert.equal(router.find('HEAD', '/ks/hash/x')?.served.path, '/ks/hash/{hash}');
  assert.equal(router.find('HEAD', '/')?.served.path, '/');
  assert.equal(router.find('HEAD', '/auth/refresh'), undefined);
  assert.equal(router.find('HEAD', '/ks/encrypt'), undefined);
});

test('the methods of a path are those of its declarations, and the local ones for the administrator alone', () => {
  for (const [path, local, methods] of [
    ['/ks/encrypt', false, ['POST']],
    ['/assets/search', false, ['POST']],
    ['/assets/x', false, ['GET', 'HEAD']],
    ['/auth/refresh', false, ['GET']],
    ['/local/status', false, []],
    ['/local/status', true, ['GET', 'HEAD']],
    ['/ks/%65ncrypt', false, ['POST']],
    ['/nowhere', true, []],
  ] as const) {
    assert.deepEqual(router.methodsOf(path, local), methods, path);
  }
});
