// A server whose lists have no end: a command that wants all of one says so, before its memory is used up.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { sampleAnswer } from '../support/answers.ts';

for (const perPage of [1, 1000]) {
  test(`a list without an end, ${perPage} on a page`, async () => {
    const home = mkdtempSync(join(tmpdir(), 'kms-endless-'));
    const { answer } = sampleAnswer('listAccounts');
    const [account] = Object(answer).data;
    const item = { ...account, notes: 'x'.repeat(perPage === 1 ? 1_000_000 : 1000) };
    let n = 0;
    const server = createServer((_, response) => {
      const data = Array.from({ length: perPage }, () => ({ ...item, uid: `u${++n}` }));
      const pagination = { limit: 1000, count: perPage, hasMore: true, nextCursor: `c${n}` };
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ data, pagination }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const main = new URL('../../src/main.ts', import.meta.url).pathname;
      const env = { HOME: home, KMS_SERVER: url, KMS_API_KEY: 'kms_x', PATH: process.env.PATH };
      const args = ['--max-old-space-size=300', main, 'account', 'list'];
      const command = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'], timeout: 60_000 });
      let said = '';
      command.stderr.on('data', (text) => {
        said += text;
      });
      const code = await new Promise((resolve) => command.once('close', resolve));
      assert.match(
        said,
        /^kms: the list is longer than this command can hold: \d+ items, and there are more; get it in/,
      );
      assert.equal(code, 1);
    } finally {
      server.close();
      server.closeAllConnections();
      rmSync(home, { recursive: true });
    }
  });
}
