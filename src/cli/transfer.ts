// Bytes from a source into an output, one write under way while the next piece is made, with progress on long ones. Either
// all of it arrives, or the output is discarded.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Output } from './byte-files.ts';
import type { Cli } from './cli.ts';
import { Interrupted, isInterruption } from './interrupted.ts';
import { hasColour, write } from './io.ts';

/** Bytes moved between two collections: the buffers of that many are what memory holds beside the program. */
const collectEvery = 8 << 20;

/**
 * Collects the young garbage. The buffers that stream through lie outside the heap, so that the engine sees little reason to
 * look after them and lets a hundred megabytes of them pile up.
 */
function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const gc: (options: { type: 'minor' }) => void = runInNewContext('gc');
  return () => gc({ type: 'minor' });
}

/** Writes everything that `pieces` yields and commits; on any failure, Ctrl-C included, discards and throws on. */
export async function transfer(cli: Cli, pieces: AsyncIterable<Uint8Array>, output: Output): Promise<void> {
  const collect = garbageCollector();
  let sinceCollected = 0;
  let pending = Promise.resolve();
  try {
    for await (const piece of pieces) {
      await pending;
      cli.io.signal.throwIfAborted();
      sinceCollected += piece.length;
      if (sinceCollected > collectEvery) {
        sinceCollected = 0;
        collect();
      }
      pending = output.write(piece);
      // Awaited one round later; until then its failure must not count as unhandled.
      pending.catch(() => undefined);
    }
    await pending;
    await output.commit();
  } catch (error) {
    await pending.catch(() => undefined);
    await output.discard();
    if (!isInterruption(cli.io, error)) throw error;
    throw new Interrupted(output.left ? 'what was written is not whole' : 'nothing was left behind');
  }
}

const firstShown = 1000;
const shownEvery = 250;

/** `source`, with its progress on stderr where that is a terminal and it takes more than a moment. */
export async function* withProgress(
  cli: Cli,
  source: AsyncIterable<Uint8Array>,
  total: number | undefined,
): AsyncGenerator<Uint8Array, void, void> {
  const { stderr } = cli.io;
  if (!stderr.isTTY) return yield* source;
  const began = performance.now();
  let next = began + firstShown;
  let shown = false;
  let done = 0;
  try {
    for await (const piece of source) {
      yield piece;
      done += piece.length;
      const now = performance.now();
      if (now < next) continue;
      next = now + shownEvery;
      shown = true;
      await write(stderr, `\r${progressLine(done, total, now - began)}${hasColour(cli.io, stderr) ? '\x1b[K' : '   '}`);
    }
  } finally {
    if (shown) await write(stderr, '\n');
  }
}

/** Such as `1.2 GiB of 10.0 GiB (12 %), 450.0 MiB/s`. */
export function progressLine(done: number, total: number | undefined, milliseconds: number): string {
  const rate = `${byteCount(milliseconds > 0 ? (done / milliseconds) * 1000 : 0)}/s`;
  if (!total) return `${byteCount(done)}, ${rate}`;
  return `${byteCount(done)} of ${byteCount(total)} (${Math.min(100, Math.floor((done / total) * 100))} %), ${rate}`;
}

export function byteCount(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return unit === 0 ? `${Math.round(value)} B` : `${value.toFixed(1)} ${units[unit]}`;
}
