// Files in the browser: names of the results, progress, and messages about failures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileErrorText, isStopped } from '../../src/console/error-text.ts';
import { decryptedName, encryptedName, transfer } from '../../src/console/files/saving.ts';
import { KmsError } from '../../src/errors.ts';

test('names of results', () => {
  assert.equal(encryptedName('letter.txt'), 'letter.txt.kms');
  const names = ['letter.txt.kms', 'LETTER.KMS', 'letter', '.kms', 'a.kms.kms'];
  assert.deepEqual(names.map(decryptedName), ['letter.txt', 'LETTER', 'letter.decrypted', '.kms.decrypted', 'a.kms']);
});

function destination() {
  const pieces: Uint8Array[] = [];
  const ended: unknown[] = [];
  const writable = new WritableStream<Uint8Array>({
    write: (piece) => void pieces.push(piece),
    abort: (reason) => void ended.push(reason),
  });
  return { pieces, ended, writable, done: () => 'kept' };
}

const signal = new AbortController().signal;

test('a file goes through whole, and its bytes are counted', async () => {
  const told: number[] = [];
  const to = destination();
  const through = new TransformStream<Uint8Array, Uint8Array>();
  const file = new Blob([new Uint8Array(200_000).fill(7)]);
  const saved = await transfer({ file, through, destination: to, signal, onProgress: (read) => told.push(read) });
  assert.equal(saved, 'kept');
  assert.deepEqual(Buffer.concat(to.pieces), Buffer.alloc(200_000, 7));
  assert.equal(told.at(-1), 200_000);
  assert.deepEqual(
    told,
    told.toSorted((a, b) => a - b),
  );
});

test('what fails or is stopped leaves nothing', async () => {
  const wrong = new KmsError('corrupt', 'it was altered');
  const failing = new TransformStream<Uint8Array, Uint8Array>({ transform: () => Promise.reject(wrong) });
  const file = new Blob(['text']);
  const to = destination();
  const onProgress = (): void => {};
  await assert.rejects(transfer({ file, through: failing, destination: to, signal, onProgress }), wrong);
  assert.deepEqual(to.ended, [wrong]);

  const stopping = new AbortController();
  stopping.abort();
  const through = new TransformStream<Uint8Array, Uint8Array>();
  const stopped = transfer({ file, through, destination: destination(), signal: stopping.signal, onProgress });
  await assert.rejects(stopped, isStopped);
});

test('whose fault it is', () => {
  const answered = new KmsError('not-found', 'no such ring', { body: { message: 'no such ring' } });
  assert.equal(fileErrorText(answered), 'No such ring.');
  const altered = new KmsError('corrupt', 'a part does not verify', { hint: 'get another copy' });
  assert.equal(
    fileErrorText(altered),
    'It could not be finished: a part does not verify. What to do: get another copy.',
  );
  const asset = new KmsError('asset-invalid', 'the asset was deleted', { body: {} });
  assert.equal(fileErrorText(asset), 'Nothing was decrypted: the asset was deleted.');
  assert.match(fileErrorText(new KmsError('unavailable', 'x')), /cannot be reached/);
  assert.equal(fileErrorText(new Error('disk full')), 'It could not be finished: disk full');
});
