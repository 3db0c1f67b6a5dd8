// How near the rings are to their rotation: what a ring's active key has encrypted against what it may. The API tells the limit; what was
// encrypted is counted in the activity log, as far as that is affordable.
import type { AnswerTo, CallOptions, Client } from '../../client/client.ts';
import { newestActivity } from '../activity/newest.ts';
import { idTime } from '../id-time.ts';

type Ring = AnswerTo<'listKeyrings'>['data'][number];

export interface RingRotation {
  readonly ring: string;
  /** How many encrypts the key may serve. */
  readonly most: number;
  /** How many it has served; undefined where that was not counted. */
  readonly served: number | undefined;
  /** When the active key was made, in milliseconds since 1970. */
  readonly since: number | undefined;
}

export interface Rotations {
  /** Those nearest to their rotation first; not counted ones last. */
  readonly rings: readonly RingRotation[];
  /** Whether there are rings that were not looked at. */
  readonly isCut: boolean;
}

/** Counting more than this would cost more than it tells. */
export const mostCounted = 20_000;
const mostRings = 40;
const atATime = 4;

export async function rotations(api: Client, options: CallOptions = {}): Promise<Rotations> {
  const { data, pagination } = await api.listKeyrings({ limit: mostRings }, options);
  const rings: RingRotation[] = [];
  for (let from = 0; from < data.length; from += atATime) {
    const group = data.slice(from, from + atATime).map((ring) => rotationOf(api, ring, options));
    for (const found of await Promise.all(group)) if (found) rings.push(found);
  }
  return { rings: rings.sort((a, b) => shareOf(b) - shareOf(a)), isCut: pagination.hasMore };
}

/** Undefined for a ring that may not be read. */
async function rotationOf(api: Client, ring: Ring, options: CallOptions): Promise<RingRotation | undefined> {
  const config = await api.getConfig({ ringname: ring.name }, options).catch(forbidden);
  if (!config) return undefined;
  const most = config.config.algos.aes256.maxEncryptCount;
  const since = idTime(ring.activeKey);
  const known = { ring: ring.displayName, most, since };
  if (most > mostCounted || since === undefined) return { ...known, served: undefined };
  const filters = { ring: ring.name, action: 'keyring.encrypt', valid: true, start: since };
  const found = await newestActivity(api.searchActivity, filters, { ...options, most: mostCounted }).catch(forbidden);
  return { ...known, served: found?.records.filter(({ status }) => status === 200).length };
}

/** From 0 to 1; below 0 where it is not known. */
export function shareOf({ served, most }: RingRotation): number {
  return served === undefined ? -1 : Math.min(1, served / most);
}

function forbidden(error: unknown): undefined {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  // A ring may also have gone since it was listed.
  if (code !== 'forbidden' && code !== 'not-found') throw error;
}
