// The guide for two nodes and a standby is run unchanged, if the system has PostgreSQL and HAProxy, while a client
// encrypts and decrypts through the proxy: each part fails in turn, and no acknowledged request is missing from the
// verified chain.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { request } from 'node:https';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { KmsError } from '../../src/errors.ts';
import { isAsShown, stepsOf } from '../docs/blocks.ts';
import { Shell } from '../docs/shell.ts';
import { postgresPrograms, postgresUser } from '../support/postgres.ts';
import { judge, type Op } from '../support/shared-judge.ts';
import { now, SharedLoad } from '../support/shared-load.ts';
import { executable } from './kms.ts';
import { addressOf, entriesOf } from './nodes.ts';

const page = 'docs/guide-nodes.md';
const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
const lacks = [...(postgresPrograms() ? [] : ['PostgreSQL']), ...(existsSync('/usr/sbin/haproxy') ? [] : ['HAProxy'])];

test(page, async (context) => {
  if (lacks.length > 0) {
    context.diagnostic(`there is no ${lacks.join(' and no ')} on this system: nothing was tried`);
    return;
  }
  await using shell = await Shell.open(undefined, { user: postgresUser(), executable });
  const load = new SharedLoad(1 << 16);
  try {
    for (const step of stepsOf(text)) {
      if (step.kind === 'file') shell.write(step.name, step.text);
      if (step.kind !== 'commands') continue;
      for (const { text: command, shown, line } of step.commands) {
        const serves = /^kms serve\b/.test(command);
        const isEnough = (output: string): boolean => isAsShown(output, shown, { begins: serves });
        const ended = await (serves ? shell.serve(command, isEnough) : shell.run(command));
        const where = `${page}:${line}: ${command}\n${ended.output}`;
        assert.equal(ended.exitCode, 0, where);
        if (shown.length > 0) assert.ok(isEnough(ended.output), where);
      }
      const apiKey = shell.path('payroll.apikey');
      if (load.ops.length === 0 && existsSync(apiKey)) begin(shell, load, readFileSync(apiKey, 'utf8').trim());
      if (load.ops.length > 0) await goesOn(load, `${page}:${step.line}`);
    }
    await load.stop();
    const verified = await shell.run('kms activity verify --data b && kms activity export -o log.jsonl --data b');
    assert.equal(verified.exitCode, 0, verified.output);
    judge(load.ops, entriesOf(readFileSync(shell.path('log.jsonl'), 'utf8'), load.ops));
    const silence = (load.silence / 1000).toFixed(1);
    context.diagnostic(`${load.answered()} answered, ${load.refused} refused, ${silence} s without any answer at most`);
    assert.ok(load.answered() > 100);
  } finally {
    await load.stop();
    const end = ['for db in db1 db2; do pg_ctl -D $db/data -m immediate stop; done', 'kill -9 $(cat haproxy.pid)'];
    for (const command of end) await shell.run(command);
  }
});

/** Checks that service has recovered after a block. */
async function goesOn(load: SharedLoad, where: string): Promise<void> {
  const since = now();
  for (const end = Date.now() + 60_000; load.answered(since) < 20; await delay(20)) {
    assert.ok(Date.now() < end, `${where}: nothing is answered any more`);
  }
}

/** Encrypts, and decrypts what it encrypted. */
function begin(shell: Shell, load: SharedLoad, apiKey: string): void {
  const ca = readFileSync(shell.path('tls/cert.pem'));
  const hashes: string[] = [];
  const ask = (op: Op): Promise<number> => {
    const hash = op.number % 2 === 1 ? hashes.at(-1) : undefined;
    const [path, body] = hash ? ['/ks/decrypt', { hash }] : ['/ks/encrypt', { ringname: 'payroll' }];
    return new Promise((resolve, reject) => {
      const unknown = (why: string): void => reject(new KmsError('unavailable', `it is not known: ${why}`));
      const sent = request(
        {
          host: 'localhost',
          family: 4,
          port: shell.port('8443'),
          path,
          method: 'POST',
          ca,
          agent: false,
          timeout: 30_000,
          localAddress: addressOf(op.number),
          headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        },
        (response) => {
          let said = '';
          response.on('data', (chunk) => {
            said += chunk;
          });
          response.on('error', (error) => unknown(error.message));
          response.on('end', () => {
            // An error of the node, or of the proxy, which has no ready node or lost the one it asked.
            if ([502, 503, 504].includes(response.statusCode ?? 0)) return unknown(said);
            if (response.statusCode === 200) hashes.push(JSON.parse(said).hash ?? hash);
            resolve(response.statusCode ?? 0);
          });
        },
      );
      sent.on('timeout', () => sent.destroy());
      sent.on('error', (error) => unknown(error.message));
      sent.end(JSON.stringify(body));
    });
  };
  // The judge treats both as operations that need an active key.
  load.clients((op) => ask(Object.assign(op, { kind: 'encrypt', name: 'k0' })), 4);
}
