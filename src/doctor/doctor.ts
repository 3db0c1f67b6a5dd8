// `kms doctor` on the appliance's machine: all checks that need no running server, and those of the stores too if none
// is running.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { StandbyAnswer } from '../api/local/copies.ts';
import { fencedOff, rememberedFence } from '../backup/fence.ts';
import type { KeySources } from '../custody/key-sources.ts';
import { isSealedOnPurpose, openSealFile, sealedOnPurpose } from '../custody/seal-keeper.ts';
import { unlockSeal } from '../custody/unlock.ts';
import { KmsError } from '../errors.ts';
import { dataDirState, inDir, needAppliance, systemDir, tenantDir } from '../platform/data-dir.ts';
import { diskSpace } from '../platform/disk.ts';
import { type Examination, type Examined, Findings } from '../platform/finding.ts';
import { type DirectoryLock, lockDirectory, lockFile, notedPid, pidFile } from '../platform/lock.ts';
import { nodeFiles } from '../platform/node-files.ts';
import { sqlWasm } from '../platform/program-files.ts';
import type { StoreSource } from '../platform/store-url.ts';
import type { Seal } from '../seal/seal.ts';
import { readRollbackNotes } from '../storage/rollback-guard.ts';
import type { StoreOf } from '../storage/stores.ts';
import { type CertificateFiles, examineCertificates, examineCustodians } from './keys.ts';
import { examineFiles, examineMemory, examineSpace, type Host, readText } from './machine.ts';
import { examineStandby } from './standby.ts';
import { examineStores, findFault, withCopies } from './stores.ts';

export interface DoctorOptions extends CertificateFiles {
  readonly data: string;
  readonly keyFile?: string | undefined;
  readonly sources?: Omit<KeySources, 'keyFile'> | undefined;
  /** The running server's findings; without it the stores are examined here. */
  readonly served?: (() => Promise<Examination>) | undefined;
  /** The running standby's own status; absent if none is running. */
  readonly standby?: (() => Promise<StandbyAnswer['standby'] | undefined>) | undefined;
  /** The database, if the directory is a node's. */
  readonly store?: StoreSource | undefined;
  readonly now?: () => number;
  readonly host?: Host;
}

/** Changes nothing. Throws if there is no appliance. */
export async function examine(options: DoctorOptions): Promise<Examination> {
  const data = resolve(options.data);
  const state = await dataDirState(data);
  // An empty directory becomes a node's at its first command; if that was on another machine there is nothing to
  // examine.
  const isNew = options.store !== undefined && (state === 'missing' || state === 'empty');
  const isNode = state === 'node' || isNew;
  const isStandby = state === 'standby';
  if (!isNode && !isStandby) await needAppliance(data);
  const { now = Date.now, host = { read: readText, space: diskSpace }, served } = options;
  const findings = new Findings();
  const lock = served ? undefined : lockForReading(data);
  try {
    const inUse = served !== undefined || lock === 'in-use';
    if (!isNew) await examineFiles({ data, inUse }, findings.add);
    const fence = await rememberedFence(nodeFiles(data));
    if (fence) {
      const { message, hint = '' } = fencedOff(fence.from);
      findings.add('error', 'taken-over', data, message, hint);
    }
    if (!isNode && !isStandby) await examineCustodians(data, options.keyFile, findings.add);
    if (!isNew) await examineSpace(host, data, findings.add);
    await examineMemory(host, inUse ? await notedPid(inDir(data, pidFile)) : undefined, findings.add);
    await examineCertificates(options, now(), findings.add);
    if (isStandby) {
      await examineStandby(data, await options.standby?.(), findings.add);
      return { stores: 0, activities: 0, dropped: 0, findings: findings.all };
    }
    const look = (): Promise<Examined> =>
      isNode ? examineDatabase(options, data, findings) : examineHere(options, data, findings);
    const examined = lock === 'in-use' ? inUseByAnother(data, findings) : await inside(options, data, findings, look);
    return { ...examined, findings: findings.all };
  } finally {
    if (typeof lock === 'object') lock.release();
  }
}

async function inside(options: DoctorOptions, data: string, findings: Findings, look: () => Promise<Examined>) {
  try {
    if (!options.served) return await look();
    const { findings: found, ...examined } = await options.served();
    findings.take(found);
    return examined;
  } catch (error) {
    if (!(error instanceof KmsError)) throw error;
    const { code, message, hint } = error;
    const [severity, name] =
      code === 'sealed'
        ? (['warning', 'sealed'] as const)
        : code === 'corrupt'
          ? (['error', 'damaged'] as const)
          : (['error', 'not-examined'] as const);
    const isOver = findings.all.some(({ name }) => name === 'taken-over');
    const otherwise = isOver ? 'examine the one that took over' : 'unseal it, then examine it again';
    findings.add(severity, name, data, `the stores were not examined: ${message}`, hint ?? otherwise);
    return { stores: 0, activities: 0, dropped: 0 };
  }
}

/** For a stopped node: the database, then the stores in it, copied and proven. */
async function examineDatabase(options: DoctorOptions, data: string, findings: Findings): Promise<Examined> {
  const { store, keyFile, sources, now = Date.now } = options;
  if (!store) {
    throw new KmsError('unavailable', 'they are in a database that was not named', {
      hint: 'name it with --store or KMS_STORE',
    });
  }
  const { SharedNode } = await import('../cluster/shared-node.ts');
  const node = await SharedNode.connect(store);
  try {
    findings.take(await node.examine(now));
    if (await node.seal.isOnPurpose()) throw sealedOnPurpose;
    const { seal } = await unlockSeal(await node.seal.read(), data, { ...sources, keyFile, exposed: true });
    try {
      return await withCopies(async (root) => {
        const files = nodeFiles(root);
        const wasm = await sqlWasm();
        const there: StoreOf[] = [];
        for (const each of storesOf(seal)) {
          try {
            if (await node.copyStore(each, { files, wasm, at: now() })) there.push(each);
          } catch (error) {
            findFault(each.dir, error, findings.add);
          }
        }
        const rollbackNotes = () => readRollbackNotes(nodeFiles(data), seal.keysFor(systemDir));
        return examineStores({ files, wasm, stores: there, rollbackNotes, now: now() }, findings.add);
      });
    } finally {
      seal.wipe();
    }
  } finally {
    await node.close();
  }
}

function storesOf(seal: Seal): readonly StoreOf[] {
  return seal.stores.map((name) => ({
    dir: name === systemDir ? name : tenantDir(name),
    keys: seal.keysFor(name),
  }));
}

async function examineHere({ keyFile, sources, now = Date.now }: DoctorOptions, data: string, findings: Findings) {
  if (await isSealedOnPurpose(nodeFiles(data))) throw sealedOnPurpose;
  const { seal } = await openSealFile(data, { ...sources, keyFile, exposed: true });
  try {
    const stores = storesOf(seal);
    const files = nodeFiles(data);
    const rollbackNotes = () => readRollbackNotes(files, seal.keysFor(systemDir));
    return await examineStores({ files, wasm: await sqlWasm(), stores, rollbackNotes, now: now() }, findings.add);
  } finally {
    seal.wipe();
  }
}

function inUseByAnother(data: string, findings: Findings) {
  const message = 'a process has it open and does not answer on its socket: its stores were not examined';
  findings.add('warning', 'in-use', data, message, 'wait until it is done, or look at its log');
  return { stores: 0, activities: 0, dropped: 0 };
}

/** Keeps others from changing anything in the meantime, if that is possible without changes of its own. */
function lockForReading(data: string): DirectoryLock | 'in-use' | undefined {
  // Without the file, the directory was never opened.
  if (!existsSync(inDir(data, lockFile))) return undefined;
  try {
    return lockDirectory(data, { onlyLooks: true });
  } catch (error) {
    return error instanceof KmsError && error.code === 'in-use' ? 'in-use' : undefined;
  }
}
