// `kms move --from` moves an appliance to a database while it serves, by way of the directory that it ships to. First
// that is copied here, and everything final is sent ahead; then a fence stops the appliance, and the rest follows,
// verified to be the same. The appliance itself reports how much it had shipped by then, so that no answered request is
// missing. After an interruption at any step the move is run again: no node serves from the database before it has the
// seal, which comes last.
import { rm, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Proven } from '../backup/follow.ts';
import type { ShippedState } from '../backup/known-state.ts';
import { needWhole } from '../backup/prove.ts';
import { beginEpoch } from '../backup/restore.ts';
import { placeKey } from '../backup/restore-command.ts';
import { Standby } from '../backup/standby.ts';
import type { Stopped } from '../backup/take-over.ts';
import { SealKeeper } from '../custody/seal-keeper.ts';
import { KmsError, systemError } from '../errors.ts';
import { sealName, systemDir } from '../platform/data-dir.ts';
import { systemWorld } from '../platform/environment.ts';
import { nodeFiles } from '../platform/node-files.ts';
import { sqlWasm } from '../platform/program-files.ts';
import { parseHeader } from '../seal/header.ts';
import type { Seal } from '../seal/seal.ts';
import { importStore, sendSegments, sharedHeld } from '../store/shared/transfer.ts';
import { type Moved, type MovedStore, type MoveOptions, movedStore, transferWorld } from './move.ts';
import { SharedNode } from './shared-node.ts';
import { SharedStores } from './shared-stores.ts';

interface MoveShippedOptions extends MoveOptions {
  /** The directory shipped to. `data` is the directory of the first node, beside which the key file is copied. */
  readonly from: string;
  /** Milliseconds that the appliance has to report that it stopped. */
  readonly wait: number;
  /** Accepts what arrived even if the appliance does not report that, or if the last of it does not verify. */
  readonly acceptOlder: boolean;
  /** Called for each step, with one line. */
  readonly said?: (line: string) => Promise<void>;
}

interface MovedShipped extends Moved {
  /** Seconds from the fence until the database may be served; absent if an earlier run got that far. */
  readonly seconds?: number;
  readonly isComplete: boolean;
  readonly keyFile?: string;
  readonly keyFileMade: boolean;
}

type Sent = Awaited<ReturnType<typeof sendSegments>>;

/** Throws `refused` if the database has an appliance, or if a standby took over from the one that ships. */
export async function moveShipped(options: MoveShippedOptions): Promise<MovedShipped> {
  const data = resolve(options.data);
  const staging = `${data}.moving`;
  const node = await SharedNode.connect(options.store);
  try {
    await node.needSound(Date.now);
    const isNew = await stat(staging).then(
      () => false,
      () => true,
    );
    if (isNew) await node.makeRoom();
    const { keys, share, from } = options;
    const standby = await Standby.open({ from, data: staging, keys: { keys, share, data } });
    try {
      const moved = await switchOver(node, standby, { ...options, data });
      await rm(staging, { recursive: true, force: true });
      return moved;
    } finally {
      await standby.close();
    }
  } catch (error) {
    throw systemError(error, options.from);
  } finally {
    await node.close();
  }
}

async function switchOver(node: SharedNode, standby: Standby, options: MoveShippedOptions): Promise<MovedShipped> {
  const { from, data, wait, acceptOlder, said } = options;
  let proven = await standby.catchUp();
  needWhole(proven.proof, from);
  const { opened } = await standby.stores(proven);
  const place = opened.slot.kind === 'recovery-kit' ? undefined : opened.place;
  // Only the process that raised the fence may discard what is there.
  const isFenced = await standby.hasFenced(proven);
  if (isFenced && (await hasArrived(node, opened.seal.applianceId))) {
    const stores = await storesThere(node, opened.seal);
    const { applianceId } = opened.seal;
    return { applianceId, from, to: node.name, stores, isComplete: true, ...(await placeKey(data, place)) };
  }
  await (isFenced && !(await node.engine.readSeal()) ? node.clear() : node.makeRoom());
  await said?.('sending what does not change any more; the appliance serves meanwhile');
  const sent = new Map<string, Sent>();
  await sendAhead(node, standby, proven, sent);
  // Sends what was shipped in the meantime, so that little is left.
  proven = await standby.catchUp(proven);
  await sendAhead(node, standby, proven, sent);
  await said?.('telling the appliance to stop');
  const began = performance.now();
  const stopped = await standby.stopOther({ wait, fence: true, acceptOlder });
  if (!stopped.isComplete && !acceptOlder) throw notComplete(wait);
  try {
    const stores = await takeRest(node, standby, stopped, sent);
    const key = await placeKey(data, place);
    await node.forgetSent();
    await node.begin(stopped.seal);
    const seconds = Math.round(performance.now() - began) / 1000;
    const { applianceId } = stopped.seal;
    return { applianceId, from, to: node.name, stores, seconds, isComplete: stopped.isComplete, ...key };
  } catch (error) {
    if (!(await node.engine.readSeal())) await node.clear();
    throw afterFence(error);
  }
}

/** Whether an earlier run was completed there. */
async function hasArrived(node: SharedNode, applianceId: string): Promise<boolean> {
  const found = await node.engine.readSeal();
  return found !== undefined && parseHeader(found.bytes, 'the seal in the database').header.applianceId === applianceId;
}

async function storesThere(node: SharedNode, seal: Seal): Promise<readonly MovedStore[]> {
  const stores: MovedStore[] = [];
  for (const { name, store, isWhole } of await node.engine.stores()) {
    if (!isWhole || !seal.stores.includes(name)) continue;
    stores.push(
      movedStore(name, await sharedHeld(await transferWorld(node, { seal }, name), Uint8Array.fromHex(store))),
    );
  }
  return stores;
}

async function sendAhead(node: SharedNode, standby: Standby, proven: Proven, sent: Map<string, Sent>): Promise<void> {
  const { shipped, opened } = await standby.stores(proven);
  await node.noteSent(shipped.stores.flatMap(({ uid }) => uid ?? []));
  for (const { dir } of shipped.stores) {
    const world = await transferWorld(node, opened, sealName(dir));
    sent.set(dir, await sendSegments(world, { files: shipped.files, dir }, sent.get(dir)));
  }
}

async function takeRest(
  node: SharedNode,
  standby: Standby,
  { last, seal, source, number }: Stopped<ShippedState>,
  sent: ReadonlyMap<string, Sent>,
): Promise<readonly MovedStore[]> {
  const { shipped } = await standby.stores(last);
  const found = shipped.stores.toSorted((a, b) => Number(b.dir === systemDir) - Number(a.dir === systemDir));
  const stores: MovedStore[] = [];
  for (const { dir, uid, sequence } of found) {
    const name = sealName(dir);
    const place = { files: shipped.files, dir };
    const held = await importStore(await transferWorld(node, { seal }, name), place, name, sent.get(dir));
    if ((uid ?? held.uid) !== held.uid || (sequence ?? held.mark.sequence) !== held.mark.sequence) {
      throw new KmsError('corrupt', `${dir}: is not the store, or not of the moment, that the journal names`);
    }
    await node.engine.finish(held.uid);
    stores.push(movedStore(name, held));
  }
  // Begins an epoch, so that the fenced appliance cannot come back under the number of the one that continues.
  const shared = new SharedStores(node, new SealKeeper(seal, node.seal), { sealed() {}, rotated() {} });
  const world = { place: shared, files: nodeFiles(standby.data), wasm: await sqlWasm() };
  await beginEpoch(world, seal, source, systemWorld(), number);
  return stores;
}

function notComplete(wait: number): KmsError {
  return new KmsError(
    'unavailable',
    `the appliance did not say within ${wait / 1000} s that it stopped; the fence stands, so it no longer serves, and ` +
      'the database is not served yet',
    {
      hint:
        'if it is still running, run this again; if it was stopped before, move its own directory with --data, or take ' +
        'what arrived with --accept-older',
    },
  );
}

function afterFence(error: unknown): unknown {
  if (!(error instanceof KmsError)) return error;
  const message = `${error.message}; the fence stands, so the appliance no longer serves, and the database is not served yet`;
  const hint = 'run this again; or serve the appliance where it was, with `kms serve --take-back`';
  return new KmsError(error.code, message, { hint, cause: error });
}
