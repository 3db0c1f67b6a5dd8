// Doctor's checks of a standby's directory: whether a process follows there, how far it is behind the shipped
// directory, and whether the followed appliance is fenced. It proves nothing: the standby itself does so continuously.
import { join } from 'node:path';
import type { StandbyAnswer } from '../api/local/copies.ts';
import { type Fence, fenceSaid } from '../backup/fence.ts';
import { shippedDirectory } from '../backup/ship-journal.ts';
import { findDirectories, rootOf } from '../backup/ship-source.ts';
import { readMark } from '../backup/standby.ts';
import { reasonOf } from '../errors.ts';
import { epochTimeOf } from '../model/timestamp.ts';
import type { Find } from '../platform/finding.ts';
import { foreignFiles } from '../platform/foreign-files.ts';

type StandbyStatus = StandbyAnswer['standby'];

/** Seconds of lag that are reported, and seconds without a proof that are. */
const late = { behind: 300, proof: 3600 } as const;

/** `status`: of the running standby; undefined if none is running. */
export async function examineStandby(data: string, status: StandbyStatus | undefined, find: Find): Promise<void> {
  const mark = await readMark(data);
  const from = status?.from ?? mark?.from ?? '';
  if (status) examineRunning(from, status, find);
  else {
    const { point } = mark?.proven ?? {};
    const followed = point ? `which it did up to ${new Date(point.at).toISOString()}` : 'and nothing has arrived yet';
    const advice = 'start it: `kms standby --from DIR`; or take over with `kms standby promote`';
    find(
      'warning',
      'standby-stopped',
      data,
      `no standby runs here: nothing follows ${from} any more, ${followed}`,
      advice,
    );
  }
  // A name in the directory proves nothing, so the life that is followed comes before the latest.
  const { appliance, epoch } = status ?? {};
  const followed =
    appliance === undefined || epoch === undefined ? mark?.proven?.directory : shippedDirectory(appliance, epoch);
  await examineFence({ from, followed, own: mark?.id }, find);
}

const passes = 'it keeps what it has, and resumes by itself once it can';

function examineRunning(from: string, status: StandbyStatus, find: Find): void {
  const { behind, shipped, proven, hasKey, problem, advice = passes } = status;
  if (problem !== undefined) find('warning', 'standby-not-following', from, problem, advice);
  if (behind && behind.seconds > late.behind) {
    const message = `the standby is ${behind.seconds} seconds and ${behind.transactions} transactions behind what is shipped`;
    find(
      'warning',
      'standby-behind',
      from,
      message,
      'see that its disk and the way to what is shipped are fast enough',
    );
  }
  if (!hasKey) {
    const advice = 'give it the key, or have it at hand for `kms standby promote`, which needs it';
    find(
      'advice',
      'standby-without-key',
      from,
      'what arrives cannot be proven to open: there is no master key',
      advice,
    );
    return;
  }
  const unproven = shipped ? (epochTimeOf(shipped.at) - (proven ? epochTimeOf(proven.at) : 0)) / 1000 : 0;
  if (unproven > late.proof) {
    const upTo = proven ? `what arrived after ${proven.at}` : 'nothing that arrived';
    const message = proven ? `${upTo} was not proven to open` : `${upTo} was proven to open yet`;
    find('warning', 'standby-not-proven', from, message, 'wait, or see the problem that `kms status` names');
  }
}

interface Followed {
  readonly from: string;
  /** Name of the life that it follows; undefined if none is known. */
  readonly followed: string | undefined;
  /** The standby's id. */
  readonly own: string | undefined;
}

/** The fence's author is reported unverified: verifying takes the keys. */
async function examineFence({ from, followed, own }: Followed, find: Find): Promise<void> {
  let said: Partial<Fence> | undefined;
  let name = '';
  try {
    const lives = foreignFiles({ path: rootOf(from) });
    const found = await findDirectories(from, lives);
    name = (found.find((life) => life.name === followed) ?? found[0])?.name ?? '';
    said = name === '' ? undefined : await fenceSaid(lives.beneath(name));
  } catch (error) {
    const advice = 'see that it is mounted, and that the appliance ships there';
    find('error', 'standby-source', from, `what is shipped cannot be looked at: ${reasonOf(error)}`, advice);
    return;
  }
  if (!said) return;
  const subject = join(from, name);
  if (said.by === own) {
    const message = 'its own fence stands, but it has not taken over: neither appliance serves';
    find('error', 'standby-cut-off', subject, message, 'run `kms standby promote` again');
    return;
  }
  const message = `the fence before the appliance that it follows says that ${said.host ?? 'another one'} took over`;
  const advice = 'have this one follow what that ships; if no standby took over, find out who raised it';
  find('warning', 'standby-fenced', subject, message, advice);
}
