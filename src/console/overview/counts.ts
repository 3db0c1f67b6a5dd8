// Numbers for the overview, from the appliance's summary: encrypts, decrypts and denials over time, and how close each
// ring is to its rotation.
import type { AnswerTo } from '../../client/client.ts';
import type { TimeAxis } from '../../model/time-ranges.ts';
import type { RingTraits } from '../text.ts';
import type { ChartSeries } from './chart-shape.ts';

type Overview = AnswerTo<'getOverview'>;

export interface OverviewNumbers {
  readonly axis: TimeAxis;
  readonly series: readonly ChartSeries[];
  /** Series of which only the newest records were counted, each with the start of its count. */
  readonly cut: readonly Cut[];
}

interface Cut {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

const seriesNames = { encrypts: 'Encrypts', decrypts: 'Decrypts', denials: 'Denials' } as const;

export function numbersOf(use: NonNullable<Overview['use']>): OverviewNumbers {
  const { from, bucket, encrypts, decrypts, denials, cut } = use;
  const starts = encrypts.map((_, index) => from + index * bucket);
  return {
    axis: { starts, bucket, end: from + starts.length * bucket },
    series: [
      { name: seriesNames.encrypts, counts: encrypts },
      { name: seriesNames.decrypts, counts: decrypts },
      { name: seriesNames.denials, counts: denials },
    ],
    cut: cut.map(({ name, since }) => ({ name: seriesNames[name], since })),
  };
}

export interface RingRotation {
  readonly ring: string;
  readonly traits?: RingTraits;
  /** Number of encrypts after which the key is rotated. */
  readonly most: number;
  /** Number of encrypts so far. */
  readonly served: number;
  /** Creation time of the active key, in milliseconds since 1970. */
  readonly since: number;
  /** Age in seconds at which the key is rotated; undefined for no limit. */
  readonly rotateAfter?: number | undefined;
}

export interface Rotations {
  /** Closest to rotation first. */
  readonly rings: readonly RingRotation[];
  /** Whether there are rings that were not examined. */
  readonly isCut: boolean;
}

export function rotationsOf({ rings, more }: NonNullable<Overview['keyrings']>): Rotations {
  const all = rings.map(
    ({ displayName, kem, offlineDecrypt, encrypts, maxEncryptCount, activeSince, rotateAfter }): RingRotation => ({
      ring: displayName,
      traits: { custody: 'client', kem, offlineDecrypt },
      most: maxEncryptCount,
      served: encrypts,
      since: activeSince,
      rotateAfter: rotateAfter ?? undefined,
    }),
  );
  return { rings: all.sort((a, b) => shareOf(b) - shareOf(a)), isCut: more };
}

/** Share of the way to its rotation from which on a key is near it. */
const nearFrom = 0.5;

/** The rings of which the active key is past half of its encrypts or of its age, the closest to rotation first. */
export function nearRotation(rings: readonly RingRotation[], now: number): RingRotation[] {
  return rings
    .filter((ring) => dueOf(ring, now).share >= nearFrom)
    .sort((a, b) => dueOf(b, now).share - dueOf(a, now).share);
}

/** How far the active key is on its way to rotation, from 0 to 1, by the limit that it reaches first. */
export function dueOf(ring: RingRotation, now: number): { readonly share: number; readonly by: 'encrypts' | 'age' } {
  const { since, rotateAfter } = ring;
  const byEncrypts = shareOf(ring);
  const byAge = rotateAfter === undefined ? 0 : Math.min(1, Math.max(0, (now - since) / (rotateAfter * 1000)));
  return byAge > byEncrypts ? { share: byAge, by: 'age' } : { share: byEncrypts, by: 'encrypts' };
}

/** From 0 to 1. */
export function shareOf({ served, most }: Pick<RingRotation, 'served' | 'most'>): number {
  return Math.min(1, served / most);
}
