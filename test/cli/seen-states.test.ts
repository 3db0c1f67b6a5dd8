// The command line's memory of the appliances that answered: a server that answers in ever other names can neither fill
// the disk with it nor have it forget what was known before.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { type Desk, desk } from './kms.ts';

const tenant = 'tenant_01jz4b8m6q3v9x2c5d7f8g9h0k';
const nameOf = (n: number): string => `${n.toString(16).padStart(32, '0')}.${tenant}`;

/** Runs `use` with a server that has a list of `pages` pages, each answered in the name of the next appliance. */
async function withMany(pages: number, use: (d: Desk, list: () => ReturnType<Desk['kms']>) => Promise<void>) {
  let answered = 0;
  const server = createServer((_, response) => {
    const n = ++answered;
    response
      .setHeader('kms-state', `${nameOf(n)}.1.5.0-00000000000000aa`)
      .setHeader('content-type', 'application/json');
    const [data, hasMore] = [[], n < pages];
    const pagination = { limit: 1000, count: 0, hasMore, ...(hasMore && { nextCursor: `c${n}` }) };
    response.end(JSON.stringify({ data, pagination }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await using d = await desk();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await use(d, () => d.kms('keyring list', { env: { KMS_API_KEY: 'kms_x', KMS_SERVER: url } }));
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const seenIn = (d: Desk): string => d.path('.local', 'state', 'kms', 'seen');

test('an address where another appliance answers each time is said, and few are remembered', async () => {
  await withMany(200, async (d, list) => {
    const { code, stderr } = await list();
    assert.equal(code, 0, stderr);
    assert.equal(stderr.match(/warning: 16 appliances answered there, and no more are remembered/g)?.length, 1, stderr);
    assert.equal(readdirSync(seenIn(d)).length, 16);
  });
});

test('what is known of very many appliances is not forgotten, and counts', async () => {
  await withMany(3, async (d, list) => {
    mkdirSync(seenIn(d), { recursive: true });
    for (let n = 3; n < 5003; n++) writeFileSync(`${seenIn(d)}/${nameOf(n)}`, `${nameOf(n)}.1.9.0-00000000000000aa\n`);
    const { code, stderr } = await list();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /WARNING: the appliance 0{31}3 was set back: it is at transaction 5 of epoch 1, and was at 9/);
    assert.match(stderr, /warning: no further appliance is remembered, since \S+ has 4096 files or more/);
    assert.equal(readdirSync(seenIn(d)).length, 5000);
  });
});
