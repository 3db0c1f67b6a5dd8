// Paths of the console's pages: how a name is encoded in a path, and back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { consolePages } from '../../src/api/console-pages.ts';
import { pathTo, placeOf } from '../../src/console/page-path.ts';

test('each page is found by its path', () => {
  for (const [page, { path }] of Object.entries(consolePages)) {
    assert.equal(placeOf(path.replace(/\{\w+\}/, 'x'))?.page, page);
  }
  assert.equal(placeOf('/console/')?.page, 'home');
});

test('whatever a thing is called, it comes back from its path', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (name) => {
      fc.pre(name.isWellFormed());
      const place = placeOf(pathTo('keyring', { name }));
      assert.deepEqual([place?.page, place?.params], ['keyring', { name }]);
    }),
  );
});

test('what is asked for stands behind the path, where it is given', () => {
  assert.equal(pathTo('activity', {}, { ring: 'a b&c', keyid: undefined }), '/console/activity?ring=a+b%26c');
  assert.equal(placeOf('/console/activity', '?ring=a+b%26c')?.query.get('ring'), 'a b&c');
});

test('no other path is a page', () => {
  for (const path of [
    '',
    '/',
    '/consoles',
    '/console/nowhere',
    '/console/keyrings/a/b',
    '/console/keyrings/%E0%A4%A',
  ]) {
    assert.equal(placeOf(path), undefined, path);
  }
});
