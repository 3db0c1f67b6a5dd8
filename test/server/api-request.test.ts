// Requests are accepted no more widely than by the adapter that streams answers: what that would refuse is refused
// before anything is done, and both see the same path and query.
import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { getRequestListener } from '@hono/node-server';
import fc from 'fast-check';
import { readAuthority } from '../../src/model/hosts.ts';
import { targetOf } from '../../src/server/api-request.ts';

/** The URL as the adapter parses it; undefined if it refuses the request. */
async function addressOf(incoming: IncomingMessage): Promise<URL | undefined> {
  let address: URL | undefined;
  const listener = getRequestListener(
    (request) => {
      address = new URL(request.url);
      return new Response();
    },
    { overrideGlobalObjects: false, autoCleanupIncoming: false, errorHandler: () => new Response() },
  );
  await listener(incoming, new ServerResponse(incoming));
  return address;
}

function incomingOf(url: string, host: string): IncomingMessage {
  const incoming = new IncomingMessage(new Socket());
  Object.assign(incoming, { url, headers: { host }, method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1 });
  return incoming;
}

/** Hosts in the form in which the app compares them. */
const hosts = [
  'kms.test',
  'a',
  'a_b',
  'a:80',
  'a:8080',
  'a:0',
  '1.2.3.4',
  '1.2.3.4:70',
  '[::1]',
  '[::1]:60000',
  'xn--a:1',
];
const piece = fc.constantFrom(
  ...[
    '/',
    '/ks',
    '/encrypt',
    '.',
    '..',
    '/.',
    '/..',
    '%',
    '%2e',
    '%2E%2e',
    '%2F',
    '%ff',
    '\\',
    '?',
    '#',
    ' ',
    '"',
    '<',
  ],
  ...['a', 'B', '~', "'", '{', '}', '|', '^', '`', '[', ']', 'ä', ':', '@', '=', '&', '+', ';', '//', 'http://x', '*'],
);
const target = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(''));

test('it has the path and query of the adapter, and refuses what that does', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...hosts),
      target,
      fc.constantFrom('/', 'http://x', 'https://x/'),
      async (host, rest, start) => {
        const url = start + rest;
        assert.equal(readAuthority(host)?.text, host);
        const ours = targetOf(incomingOf(url, host));
        const theirs = await addressOf(incomingOf(url, host));
        if (ours) assert.deepEqual(ours, { path: theirs?.pathname, search: theirs?.search }, `${host} ${url}`);
        else assert.equal(theirs, undefined, `${host} ${url}`);
      },
    ),
    { numRuns: 5000 },
  );
});
