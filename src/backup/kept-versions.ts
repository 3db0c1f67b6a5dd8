// Seals and journals of a local copy that others replaced while there was no key. Nothing tells then which of them is
// right, so none is lost: a journal is replaced only by one with all its points, and kept beside it under another name.
// With the key the right one is put back, and the others are removed.
import { setImmediate } from 'node:timers/promises';
import { equalBytes } from '../crypto/bytes.ts';
import { KmsError } from '../errors.ts';
import { longestSeal, sealFile } from '../platform/data-dir.ts';
import type { Files } from '../store/files.ts';
import {
  arrived,
  beginningOf,
  journalFile,
  nextSealFile,
  type Point,
  PointChain,
  samePlace,
  sealAfter,
} from './ship-journal.ts';
import { journalBytes } from './shipped-bounds.ts';

interface Keeping {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Throws `refused` unless a file of this many bytes can be written. */
  needRoom(name: string, bytes: number): Promise<void>;
}

type Kind = typeof sealFile | typeof journalFile;

/** Names end in the time at which the file was replaced, in epoch milliseconds. */
const keptPattern = /^(kms\.seal|points\.kms)\.kept-([0-9]{1,15})$/;
/** Changes of keys and new tenants change the seal: a few a year. */
const mostSeals = 32;
/**
 * Shipping drops the first lines of a journal a few times a day. None of those kept makes room for another: somebody
 * could replace the journal until the right one is gone.
 */
const mostJournals = { count: 1024, bytes: 1024 * 1024 * 1024 };

async function keptNames(copy: Files, of: Kind): Promise<readonly { readonly name: string; readonly at: number }[]> {
  const kept = (await copy.list('.')).flatMap((name) => {
    const [, file, at] = keptPattern.exec(name) ?? [];
    return file === of ? [{ name, at: Number(at) }] : [];
  });
  return kept.sort((a, b) => b.at - a.at);
}

/** Files under which a seal, or a journal, may be: the current one, then those that it replaced, the latest first. */
export async function keptVersions(copy: Files, of: Kind): Promise<readonly string[]> {
  const current = of === sealFile ? [sealFile, nextSealFile] : [journalFile];
  const there = [];
  for (const name of current) if (await copy.exists(name)) there.push(name);
  return [...there, ...(await keptNames(copy, of)).map(({ name }) => name)];
}

/** Makes this seal the current one again, and the journal if there is one: the key proved them. */
export async function putBack(copy: Files, seal: Uint8Array, journal: Uint8Array | undefined): Promise<void> {
  await copy.replace(sealFile, seal);
  if (await copy.exists(nextSealFile)) await copy.remove(nextSealFile);
  if (journal) await copy.replace(journalFile, journal);
}

/** Removes them all, once a state is proven. */
export async function removeKept(copy: Files): Promise<void> {
  for (const kind of [sealFile, journalFile] as const) {
    for (const { name } of await keptNames(copy, kind)) await copy.remove(name);
  }
}

/** Keeps the seal that is about to be replaced. */
export async function keepSeal(copy: Files, keeping: Keeping): Promise<void> {
  const seal = await copy.read(sealFile, longestSeal);
  const kept = await keptNames(copy, sealFile);
  for (const { name } of kept) if (equalBytes(await copy.read(name, longestSeal), seal)) return;
  if (kept.length >= mostSeals) {
    throw new KmsError('refused', `another seal arrived, after ${mostSeals} others that no key proved`, {
      hint: keyTells,
    });
  }
  await keep(copy, sealFile, seal, keeping);
}

/**
 * Keeps the journal that is about to be replaced by `next`, unless that begins with it. Throws `refused` if `next` does
 * not go on from it, or if too many are kept.
 */
export async function keepJournal(copy: Files, next: Uint8Array, directory: string, keeping: Keeping): Promise<void> {
  if (!(await copy.exists(journalFile))) return;
  const bytes = await journalBytes(copy, journalFile);
  const before = await beginningOf(bytes, new PointChain(directory, undefined));
  const journal = bytes.subarray(0, before.bytes);
  if (beginsWith(next, journal)) return;
  const { points } = await beginningOf(next, new PointChain(directory, undefined));
  if (!(await goesOnFrom(before.points, points))) throw isOther(before.points.at(-1)?.at ?? 0);
  let [count, total] = [1, journal.length];
  for (const { name } of await keptNames(copy, journalFile)) {
    const size = await copy.size(name);
    if (size === journal.length && equalBytes(await journalBytes(copy, name), journal)) return;
    count += 1;
    total += size;
  }
  if (count > mostJournals.count || total > mostJournals.bytes) {
    throw new KmsError('refused', `the journal was replaced, and no more than ${count - 1} others are kept unproven`, {
      hint: keyTells,
    });
  }
  await keep(copy, journalFile, journal, keeping);
}

/** Removes the kept journals that are the beginning of the current one. */
export async function removeContained(copy: Files, journal: Uint8Array): Promise<void> {
  for (const { name } of await keptNames(copy, journalFile)) {
    if ((await copy.size(name)) > journal.length) continue;
    if (beginsWith(journal, await journalBytes(copy, name))) await copy.remove(name);
  }
}

function beginsWith(bytes: Uint8Array, beginning: Uint8Array): boolean {
  return equalBytes(bytes.subarray(0, beginning.length), beginning);
}

/** Points of one time that are tried as the first of a shortened journal: a forged one could have any number. */
const mostTries = 16;

/**
 * Whether a journal has all points of an earlier one, as far as they can be read without the key. Shipping drops the
 * first lines after a while: then the first has all stores as of one that was there. Where somebody else dropped them,
 * they may come back.
 */
async function goesOnFrom(before: readonly Point[], now: readonly Point[]): Promise<boolean> {
  const [oldest, first] = [before[0], now[0]];
  if (!oldest) return true;
  if (!first) return false;
  for (const at of placesOf(first, before)) {
    if ((await startsWith(now.slice(1), before.slice(at + 1))) && sameState(before.slice(0, at + 1), first))
      return true;
  }
  for (const at of placesOf(oldest, now)) {
    if ((await startsWith(now.slice(at + 1), before.slice(1))) && sameState(now.slice(0, at + 1), oldest)) return true;
  }
  return false;
}

/** Where a point may be among others, by its time. */
function placesOf(point: Point, points: readonly Point[]): readonly number[] {
  return points.flatMap(({ at }, i) => (at === point.at ? [i] : [])).slice(-mostTries);
}

/** Stores compared before yielding to the event loop. */
const comparedATurn = 4096;

async function startsWith(points: readonly Point[], beginning: readonly Point[]): Promise<boolean> {
  if (points.length < beginning.length) return false;
  let compared = 0;
  for (const [i, point] of beginning.entries()) {
    if (!samePoint(point, points[i])) return false;
    compared += 1 + Object.keys(point.stores).length;
    if (compared < comparedATurn) continue;
    await setImmediate();
    compared = 0;
  }
  return true;
}

/** Without the epoch of the line's key, which changes when it is written again. */
function samePoint(a: Point, b: Point | undefined): boolean {
  const text = ({ at, seal, stores }: Point): string => JSON.stringify([at, seal, stores]);
  return b !== undefined && a.at === b.at && text(a) === text(b);
}

function sameState(points: readonly Point[], first: Point): boolean {
  const [had, has] = [arrived(points), arrived([first])];
  if (had.size !== has.size || sealAfter(points) !== first.seal) return false;
  return [...had].every(([dir, place]) => samePlace(place, has.get(dir)));
}

const keyTells = 'what is here is kept; give the key with --key-file, which tells which is right';

function isOther(at: number): KmsError {
  const time = new Date(at).toISOString();
  return new KmsError('refused', `the journal there does not go on from what had arrived by ${time}`, {
    hint:
      'somebody replaced it, or its lines since then were dropped while this did not follow (--ship-window). Without ' +
      'the key nothing tells which: what arrived is kept, and nothing is copied until it goes on; or give the key, with ' +
      '--key-file',
  });
}

async function keep(copy: Files, name: Kind, bytes: Uint8Array, { now, needRoom }: Keeping): Promise<void> {
  let at = Math.max(0, Math.floor(now));
  while (await copy.exists(`${name}.kept-${at}`)) at++;
  await needRoom(`${name}.kept-${at}`, bytes.length);
  await copy.replace(`${name}.kept-${at}`, bytes);
}
