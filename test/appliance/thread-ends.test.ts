// How threads end: after their last order, with a garbage collection first, and within their time limit.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { endThread } from '../../src/platform/threads/ending.ts';

const ending = new URL('../../src/platform/threads/ending.ts', import.meta.url);

test('a thread collects before it ends, after what it does', async () => {
  const code = `const { parentPort } = require('node:worker_threads');
    globalThis.gc = () => parentPort.postMessage('collected');
    import(${JSON.stringify(ending.href)}).then(({ takeOrders }) => {
      const close = async () => parentPort.postMessage('closed');
      takeOrders(parentPort, (order) => parentPort.postMessage(order), close);
      parentPort.postMessage('ready');
    });`;
  const worker = new Worker(code, { eval: true });
  const said: unknown[] = [];
  worker.on('message', (each) => said.push(each));
  await once(worker, 'message');
  worker.postMessage('order');
  const exited = once(worker, 'exit');
  await endThread(worker);
  assert.deepEqual(said, ['ready', 'order', 'closed', 'collected']);
  assert.deepEqual(await exited, [0]);
  await endThread(worker);
});

test('one that is busy is not waited for as long as it likes', async () => {
  const code = `const { parentPort } = require('node:worker_threads');
    parentPort.on('message', () => {});
    parentPort.postMessage('busy');
    for (;;) {}`;
  const worker = new Worker(code, { eval: true });
  await once(worker, 'message');
  const began = performance.now();
  await endThread(worker);
  assert.equal(worker.threadId, -1);
  assert.ok(performance.now() - began < 10_000);
  await endThread(worker);
});

test('one that cannot be ended does not keep the process', async () => {
  const code = `const { Worker } = require('node:worker_threads');
    const busy = "require('node:worker_threads').parentPort.postMessage('busy');" +
      "require('node:crypto').pbkdf2Sync('a', 'b', 200_000_000, 32, 'sha512');";
    const worker = new Worker(busy, { eval: true });
    worker.once('message', async () => {
      const { endThread } = await import(${JSON.stringify(ending.href)});
      await endThread(worker);
      process.exit(0);
    });`;
  const child = spawn(process.execPath, ['--eval', code], { stdio: 'inherit' });
  const began = performance.now();
  assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL']);
  assert.ok(performance.now() - began < 20_000);
});
