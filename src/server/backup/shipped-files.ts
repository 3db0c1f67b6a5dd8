// How a shipped directory is laid out: one directory for each epoch of each appliance, and in it the files of the stores under
// their own names, but for segments of the activity log, which a change of keys rewrites: those have the epoch of their key behind.

import { toHex } from '../../crypto/encoding.ts';
import { sha256 } from '../../crypto/hash.ts';
import { logName, snapshotName } from '../../store/file-names.ts';
import type { Files } from '../../store/files.ts';
import type { HeldFile } from '../../store/hold.ts';
import { sealFile } from '../data-dir.ts';
import { type Point, type ShippedPlace, sealAfter } from './points.ts';

/** A seal that came after the last point: it counts when a point says so, since with it older files may not open any more. */
export const nextSealFile = `${sealFile}.next`;

const directoryPattern = /^([0-9a-f]{32})-([0-9]{1,15})$/;
const segmentPattern = /^(activity-[0-9]{12}\.kms)\.([0-9]{1,5})$/;

export function shippedDirectory(applianceId: string, epoch: number): string {
  return `${applianceId}-${epoch}`;
}

export function sealDigest(bytes: Uint8Array): string {
  return toHex(sha256(bytes));
}

/** The seal file that opens what arrived up to the last of `points`, which are all that there are. */
export async function shippedSeal(files: Files, points: readonly Point[]): Promise<Uint8Array> {
  if (await files.exists(nextSealFile)) {
    const next = await files.read(nextSealFile);
    if (sealDigest(next) === sealAfter(points)) return next;
  }
  return files.read(sealFile);
}

export interface ShippedDirectory {
  readonly name: string;
  readonly appliance: string;
  readonly epoch: number;
}

export function parseShippedDirectory(name: string): ShippedDirectory | undefined {
  const [, appliance, epoch] = directoryPattern.exec(name) ?? [];
  return appliance === undefined ? undefined : { name, appliance, epoch: Number(epoch) };
}

export function isSegment({ name }: HeldFile): boolean {
  return /\/activity-[0-9]{12}\.kms$/.test(name);
}

export function isLog({ name }: HeldFile): boolean {
  return /\/log-[0-9]{10}\.kms$/.test(name);
}

/** The name under which a segment is shipped; its header says in clear under which key it is. */
export async function shippedSegment(files: Pick<Files, 'readAt'>, name: string): Promise<string> {
  const [high = 0, low = 0] = await files.readAt(name, 10, 2);
  return `${name}.${high * 256 + low}`;
}

/** A shipped segment's own name and the epoch of its key. */
export function parseShippedSegment(name: string): { readonly own: string; readonly epoch: number } | undefined {
  const [, own, epoch] = segmentPattern.exec(name) ?? [];
  return own === undefined ? undefined : { own, epoch: Number(epoch) };
}

/** Snapshot and logs from which the store is recovered to `place`; of the last log only a part may count. */
export function filesUpTo(dir: string, { snapshot, log, offset }: ShippedPlace): { name: string; bytes?: number }[] {
  const logs = Array.from({ length: Math.max(0, log - snapshot) }, (_, i) => snapshot + 1 + i);
  return [
    { name: snapshotName(dir, snapshot) },
    ...logs.map((generation) => ({ name: logName(dir, generation), ...(generation === log ? { bytes: offset } : {}) })),
  ];
}
