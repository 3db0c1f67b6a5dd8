// The thread that hashes passwords: bounded work, failures, and its priority.
import assert from 'node:assert/strict';
import { getPriority } from 'node:os';
import { after, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { type PasswordWorkerOptions, passwordWorker } from '../../src/platform/threads/passwords.ts';
import { threadPriorities } from '../support/thread-priorities.ts';

const cheap = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4';

function setUp(options: Partial<PasswordWorkerOptions> = {}) {
  const threads: Worker[] = [];
  const start = (): Worker => {
    const thread = new Worker(new URL('../support/password-thread.ts', import.meta.url));
    threads.push(thread);
    return thread;
  };
  const passwords = passwordWorker({ start, random: systemRandom, ...options });
  after(() => passwords.close());
  return { passwords, threads };
}

const isUnavailable = (error: unknown): boolean => error instanceof KmsError && error.code === 'unavailable';

test('hashes and verifies on one thread, started when it is needed', async () => {
  const { passwords, threads } = setUp();
  assert.equal(threads.length, 0);
  const stored = await passwords.hash('Secret-123');
  assert.notEqual(stored, await passwords.hash('Secret-123'), 'each hash has a salt of its own');
  const verdicts = await Promise.all(['Secret-123', 'Secret-124', ''].map((each) => passwords.verify(stored, each)));
  assert.deepEqual(verdicts, [true, false, false]);
  assert.equal(threads.length, 1);
});

test('the serving thread goes on meanwhile', async () => {
  const { passwords } = setUp();
  await passwords.verify(cheap, 'password');
  let turns = 0;
  let done = false;
  const hashing = passwords.hash('Secret-123').then(() => {
    done = true;
  });
  while (!done) {
    turns++;
    await new Promise(setImmediate);
  }
  await hashing;
  assert.ok(turns > 10, `${turns} turns of the event loop while a hash was made`);
});

test('on Linux the thread lets the serving thread go first', async () => {
  const { passwords } = setUp();
  await passwords.verify(cheap, 'password');
  if (process.platform !== 'linux') return;
  // The tests themselves may have been started with `nice`.
  const started = getPriority();
  const priorities = threadPriorities();
  assert.equal(priorities[0], started, 'the serving thread');
  assert.ok(priorities.includes(Math.min(19, started + 3)), `nice values of the threads: ${priorities}`);
});

test('the queue is bounded, and empties', async () => {
  const { passwords } = setUp({ most: 3 });
  const three = [1, 2, 3].map(() => passwords.verify(cheap, 'password'));
  await assert.rejects(passwords.verify(cheap, 'password'), isUnavailable);
  assert.deepEqual(await Promise.all(three), [true, true, true]);
  assert.equal(await passwords.verify(cheap, 'password'), true);
});

test('a stored hash that does not parse is an error of its own', async () => {
  const { passwords } = setUp();
  await assert.rejects(
    passwords.verify('nonsense', 'password'),
    (error) => error instanceof KmsError && error.code === 'corrupt',
  );
  assert.equal(await passwords.verify(cheap, 'password'), true);
});

test('when the thread dies, what it had fails and the next request starts another', async () => {
  const { passwords, threads } = setUp();
  const lost = assert.rejects(passwords.hash('Secret-123'), isUnavailable);
  await threads[0]?.terminate();
  await lost;
  assert.equal(await passwords.verify(cheap, 'password'), true);
  assert.equal(threads.length, 2);
});

test('after close everything is refused', async () => {
  const { passwords } = setUp();
  const lost = assert.rejects(passwords.hash('Secret-123'), isUnavailable);
  await passwords.close();
  await lost;
  await assert.rejects(passwords.hash('Secret-123'), isUnavailable);
});
