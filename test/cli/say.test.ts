// Messages on stderr are best effort: no result depends on a reader.
import assert from 'node:assert/strict';
import { Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { type Io, say } from '../../src/cli/io.ts';
import { runCli } from '../../src/cli/run.ts';

type Write = (done: (error?: Error) => void) => void;

/** `write` handles each piece written to stderr. */
function ioWith(write: Write, { args = [], signal = new AbortController().signal }: Partial<Io> = {}): Io {
  const stdout = new Writable({ write: (_piece, _encoding, done) => done() });
  const stderr = new Writable({ write: (_piece, _encoding, done) => write(done) });
  stderr.on('error', () => undefined);
  return { args, env: {}, cwd: '/', home: '/', stdin: Readable.from([]), stdout, stderr, signal };
}

const failure = (code: string): Write => {
  return (done) => done(Object.assign(new Error(`write ${code}`), { code, syscall: 'write' }));
};
const never: Write = () => undefined;

test('a line that cannot be written fails nothing', async () => {
  for (const code of ['EPIPE', 'ENOSPC', 'EIO']) {
    const io = ioWith(failure(code));
    await say(io, 'first');
    // By now the stream has ended with its error.
    await say(io, 'second');
  }
});

test('a slow reader is waited for', async () => {
  let read: (() => void) | undefined;
  let said = false;
  const io = ioWith((done) => {
    read = done;
  });
  const saying = say(io, 'line').then(() => {
    said = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(said, false);
  read?.();
  await saying;
});

test('one that reads nothing is not, once the command is to end', async () => {
  const stop = new AbortController();
  const saying = say(ioWith(never, { signal: stop.signal }), 'line');
  stop.abort('SIGTERM');
  await saying;
  await say(ioWith(never, { signal: AbortSignal.abort('SIGTERM') }), 'line');
});

test('the exit code holds without a reader', async () => {
  assert.equal(await runCli(ioWith(failure('EPIPE'), { args: ['keyring', 'sing'] })), 2);
  assert.equal(await runCli(ioWith(failure('EPIPE'), { args: ['decrypt', '/nowhere/at/all'] })), 1);
  for (const code of ['EPIPE', 'EBADF', 'ENOSPC', 'EIO']) {
    const stdout = new Writable({ write: (_chunk, _encoding, done) => failure(code)(done) });
    stdout.on('error', () => undefined);
    for (const line of ['--version', '--help', 'man', 'licenses --sbom', 'completion bash', 'keyring --help']) {
      const io = { ...ioWith(failure('EPIPE'), { args: line.split(' ') }), stdout };
      assert.equal(await runCli(io), 1, `${code} ${line}`);
    }
  }
  const interrupted = { args: ['status'], signal: AbortSignal.abort('SIGTERM') };
  assert.equal(await runCli(ioWith(never, interrupted)), 143);
});
