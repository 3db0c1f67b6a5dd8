// Writes a backup piece by piece, in constant memory: for each open store the files of one commit, for others their
// files at rest. One is made automatically before a newer program changes the stores.
import { basename } from 'node:path/posix';
import { sealXChaCha } from '../crypto/aead.ts';
import { concatBytes, toHex, utf8 } from '../crypto/bytes.ts';
import { runningSha256, sha256 } from '../crypto/hash.ts';
import { systemRandom } from '../crypto/random.ts';
import type { SealKeeper } from '../custody/seal-keeper.ts';
import { KmsError } from '../errors.ts';
import { sealFile, systemDir, tenantDir } from '../platform/data-dir.ts';
import type { ApplianceEvent } from '../platform/events.ts';
import type { Seal } from '../seal/seal.ts';
import type { Tenants } from '../storage/served-tenants.ts';
import type { StorePlace } from '../storage/store-place.ts';
import type { SystemStore } from '../storage/stores.ts';
import { readError, SegmentFault } from '../store/activity/segment.ts';
import type { Files } from '../store/files.ts';
import type { HeldFile, Store, StoreHold } from '../store/port.ts';
import type { TenantRecord } from '../store/tables/tenants.ts';
import { version } from '../version.ts';
import {
  encodeHeader,
  endMark,
  isSegment,
  type Manifest,
  type ManifestFile,
  type ManifestStore,
  nonceLength,
  partHead,
  pieces,
  type StoreSummary,
  type Summary,
  summaryLabel,
  u32,
} from './format.ts';
import { openBackup } from './read.ts';

/** A store to be copied. */
interface CopiedStore {
  readonly dir: string;
  /** In hexadecimal. */
  readonly uid: string;
  readonly sequence?: number;
  readonly files: readonly HeldFile[];
  /** The port of its files. Default: the data directory. */
  readonly source?: StoreHold['source'];
  readonly summary?: StoreSummary;
  /** Segments known to be missing or changed. */
  readonly faulty?: readonly string[];
}

interface BackupInput {
  readonly files: Files;
  /** The current seal. Called at the end: it has all keys that the copied files need. */
  seal(): Seal;
  readonly stores: readonly CopiedStore[];
  /** In epoch milliseconds. */
  readonly at: number;
  random(length: number): Uint8Array;
}

export async function* writeBackup(input: BackupInput): AsyncGenerator<Uint8Array> {
  const { files, stores, random } = input;
  const structure = runningSha256();
  const kept = (bytes: Uint8Array): Uint8Array => {
    structure.update(bytes);
    return bytes;
  };
  const before = input.seal();
  const header = encodeHeader(before.applianceId);
  yield kept(header);
  const copied: ManifestStore[] = [];
  const faulty = new Set(stores.flatMap((store) => store.faulty ?? []));
  for (const { dir, uid, sequence, files: held, source = files } of stores) {
    const done: ManifestFile[] = [];
    for (const file of held) {
      const { name, bytes } = file;
      // A lost segment cannot be copied; the rest is backed up all the same.
      if (await isLost(source, file)) {
        faulty.add(name);
        continue;
      }
      yield kept(partHead(name, bytes));
      const digest = runningSha256();
      for await (const piece of pieces(source, name, bytes)) {
        digest.update(piece);
        yield piece;
      }
      done.push({ name, bytes, sha256: toHex(digest.digest()) });
    }
    copied.push({ dir, uid, ...(sequence === undefined ? {} : { sequence }), files: done });
  }
  const seal = input.seal();
  if (!stillOpens(seal, before)) {
    throw new KmsError('unavailable', 'keys of a tenant were changed while it was copied', { hint: 'try again' });
  }
  const sealBytes = seal.toBytes();
  yield kept(partHead(sealFile, sealBytes.length));
  yield sealBytes;
  const keys = seal.keysFor(systemDir);
  const manifest = utf8(
    JSON.stringify(
      manifestOf(seal, { name: sealFile, bytes: sealBytes.length, sha256: toHex(sha256(sealBytes)) }, keys.epoch, {
        at: input.at,
        stores: copied,
        faulty: [...faulty].sort(),
      }),
    ),
  );
  const summary: Summary = Object.fromEntries(
    stores.flatMap((store) => (store.summary ? [[store.dir, store.summary]] : [])),
  );
  const nonce = random(nonceLength);
  const bound = concatBytes(summaryLabel, header, manifest);
  const sealed = sealXChaCha(keys.key('backup'), nonce, utf8(JSON.stringify(summary)), bound);
  yield kept(concatBytes(new Uint8Array([endMark]), u32(manifest.length), manifest));
  yield kept(concatBytes(u32(nonceLength + sealed.length), nonce, sealed));
  yield structure.digest();
}

function manifestOf(
  seal: Seal,
  sealed: ManifestFile,
  keyEpoch: number,
  { at, stores, faulty }: Pick<Manifest, 'stores'> & { readonly at: number; readonly faulty: readonly string[] },
): Manifest {
  return {
    format: 'kms-backup',
    version: 1,
    program: version,
    createdAt: new Date(at).toISOString(),
    appliance: seal.applianceId,
    master: seal.fingerprint,
    custodians: seal.slots.map(({ kind, id }) => ({ kind, fingerprint: id })),
    keyEpoch,
    seal: sealed,
    stores,
    ...(faulty.length > 0 ? { faulty } : {}),
  };
}

/** Whether a file is an activity log segment that cannot be copied intact. */
export async function isLost(files: Pick<Files, 'readAt' | 'size'>, file: HeldFile): Promise<boolean> {
  if (!isSegment(file)) return false;
  const { name, bytes } = file;
  try {
    if ((await files.size(name)) !== bytes) return true;
    await files.readAt(name, 0, 1);
    return false;
  } catch (error) {
    if (readError(name, error) instanceof SegmentFault) return true;
    throw error;
  }
}

/** Whether `after` opens everything that `before` opened, and thus files copied in between. */
export function stillOpens(after: Seal, before: Seal): boolean {
  return before.stores.every((dir) => {
    if (!after.stores.includes(dir)) return false;
    const now = new Map(after.epochsOf(dir).map(({ epoch, retired }) => [epoch, retired]));
    return before.epochsOf(dir).every(({ epoch, retired }) => now.has(epoch) && (retired || now.get(epoch) === false));
  });
}

export interface Collecting {
  readonly files: Files;
  readonly system: SystemStore;
  readonly tenants: Tenants;
  readonly place: Pick<StorePlace, 'atRest'>;
  readonly admin: {
    list(): Promise<readonly TenantRecord[]>;
    /** Runs while no tenant is created, deleted, restored or erased. */
    exclusively<R>(run: () => Promise<R>): Promise<R>;
  };
}

export interface Collected {
  readonly stores: readonly (CopiedStore & { readonly hold?: StoreHold })[];
  release(): void;
}

/** Holds the files of all stores. No request waits; tenants are created and deleted before or after. */
export function collect(
  { system, tenants, admin, place }: Collecting,
  { counted }: { readonly counted: boolean },
): Promise<Collected> {
  return admin.exclusively(async () => {
    const holds: StoreHold[] = [];
    const open = async (
      dir: string,
      store: Pick<Store<never>, 'hold' | 'status'>,
    ): Promise<Collected['stores'][number]> => {
      const faulty = store.status().activityFaults.map(({ path }) => `${dir}/${basename(path)}`);
      const hold = await store.hold(counted);
      holds.push(hold);
      return { ...copied(dir, hold, counted), faulty };
    };
    const release = (): void => {
      for (const hold of holds) hold.release();
    };
    const served = new Map(tenants.all.map(({ record, handle }) => [record.id, handle.store]));
    try {
      const records = await admin.list();
      const found = await Promise.allSettled([
        open(systemDir, system),
        ...records.map(({ id, dir }) => {
          const store = served.get(id);
          return store ? open(tenantDir(dir), store) : atRest(place, tenantDir(dir), counted, holds);
        }),
      ]);
      const stores = found.flatMap((each) => {
        if (each.status === 'rejected') throw each.reason;
        return each.value ? [each.value] : [];
      });
      return { stores, release };
    } catch (error) {
      release();
      throw error;
    }
  });
}

function copied(dir: string, hold: StoreHold, counted: boolean): Collected['stores'][number] {
  const { uid, sequence, source, activity, tables, files } = hold;
  const summary = counted ? { summary: { activity, tables } } : {};
  return { dir, uid: toHex(uid), sequence, files, source, ...summary, hold };
}

/** A store that is not open here; undefined if there is none. Its hold, if it has one, is added to `holds`. */
async function atRest(
  place: Pick<StorePlace, 'atRest'>,
  dir: string,
  counted: boolean,
  holds: StoreHold[],
): Promise<CopiedStore | undefined> {
  const found = await place.atRest(dir, counted);
  if (!found) return undefined;
  const { uid, files, hold } = found;
  if (!hold) return { dir, uid: toHex(uid), files };
  holds.push(hold);
  return copied(dir, hold, counted);
}

const prefix = 'before-migration-';
/** Number of earlier migrations' backups that are kept. */
const kept = 2;

interface Migrating extends Pick<Collecting, 'files' | 'place'> {
  /** The data directory, which may be a node's. */
  readonly root: string;
  readonly seal: SealKeeper;
  now(): number;
}

/**
 * Makes the backup in the data directory itself, from which `kms restore` brings back what the older program can read.
 * Call it before the first store is changed; later calls of the same start do nothing more.
 */
export function backupBeforeMigration(
  { files, place, root, seal, now }: Migrating,
  onEvent: ((event: ApplianceEvent) => void) | undefined,
): () => Promise<void> {
  let made: Promise<void> | undefined;
  const make = async (): Promise<void> => {
    const at = now();
    const name = `${prefix}${new Date(at).toISOString().replace(/[-:]|\.[0-9]+/g, '')}.kms-backup`;
    const dirs = seal.current.stores.map((dir) => (dir === systemDir ? dir : tenantDir(dir)));
    const holds: StoreHold[] = [];
    try {
      const stores: CopiedStore[] = [];
      for (const dir of dirs) {
        const store = await atRest(place, dir, false, holds);
        if (store) stores.push(store);
      }
      await files.replace(name, writeBackup({ files, seal: () => seal.current, stores, at, random: systemRandom }));
      await openBackup(files, name);
    } catch (cause) {
      throw new KmsError(
        'unavailable',
        `${root}: the backup before the migration could not be made; nothing was changed`,
        {
          hint: 'make room on the disk, or go on with the older program',
          cause,
        },
      );
    } finally {
      for (const hold of holds) hold.release();
    }
    onEvent?.({ level: 'info', message: `${root}/${name}: a backup from before this program's first start here` });
    const older = (await files.list('.')).filter((each) => each.startsWith(prefix) && each !== name).sort();
    for (const each of older.slice(0, -kept)) await files.remove(each);
  };
  return () => {
    made ??= make();
    return made;
  };
}
