// Creates an appliance: data directory, master key, the appliance's own store, and the tenant `default` with its first
// account and API key. The seal is written last: until then the directory counts as unfinished, and the next `init`
// starts over.
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { FullApiKey } from '../api/apikeys.ts';
import { bootstrap } from '../core/set-up.ts';
import { toHex, utf8 } from '../crypto/bytes.ts';
import { systemRandom } from '../crypto/random.ts';
import { defaultKeyFile } from '../custody/key-file.ts';
import { credentialSource, environmentSource, type KeySources } from '../custody/key-sources.ts';
import { type CustodianRequest, type NewCustodian, newCustodian, recoveryKitText } from '../custody/new-custodian.ts';
import { SealKeeper } from '../custody/seal-keeper.ts';
import { KmsError, systemError } from '../errors.ts';
import {
  dataDirState,
  foreign,
  inDir,
  initMark,
  isStandby,
  makeAndHold,
  moved,
  ofNode,
  sealFile,
  systemDir,
  tenantDir,
  unrestored,
} from '../platform/data-dir.ts';
import { systemWorld } from '../platform/environment.ts';
import { nodeFiles } from '../platform/node-files.ts';
import { sqlWasm } from '../platform/program-files.ts';
import type { StoreSource } from '../platform/store-url.ts';
import { type Seal, sealFor } from '../seal/seal.ts';
import type { Slot } from '../seal/slot.ts';
import { anyHost, hostList } from '../storage/served-tenants.ts';
import { openSystemStore, openTenantStore, type StoreWorld, storesIn } from '../storage/stores.ts';

interface InitOptions {
  /** The data directory: missing, empty, or left unfinished by an earlier try. With `store`, that of the first node. */
  readonly data: string;
  /** A database without an appliance, to be shared by several nodes. */
  readonly store?: StoreSource | undefined;
  /** An existing file is used as it is. Default: beside the data directory. */
  readonly keyFile?: string | undefined;
  /** Hosts that the tenant answers; every host if the list is empty. */
  readonly hosts?: readonly string[] | undefined;
  /** Custodian of the master key. Default: the one that the environment has a secret for, else a key file. */
  readonly custodian?: CustodianRequest | undefined;
  /** Looks up environment variables. Default: the process's. */
  readonly env?: KeySources['env'];
  /** Whether to make a recovery kit too. */
  readonly recoveryKit?: boolean | undefined;
}

export interface Initialised {
  readonly tenant: { readonly id: string; readonly name: string; readonly hosts: readonly string[] };
  readonly accountId: string;
  /** Allowed everything; its secret is stored nowhere else. */
  readonly apiKey: FullApiKey;
  readonly applianceId: string;
  /** Fingerprint of the master key. */
  readonly fingerprint: string;
  readonly data: string;
  /** Path of the key file, or its default path if the custodian is of another kind. */
  readonly keyFile: string;
  /** Whether the key file was created, not found. */
  readonly keyFileMade: boolean;
  readonly custodian: Slot['kind'];
  /** Texts for the people who keep them; stored nowhere else. */
  readonly shares?: readonly string[];
  /** For KMS_MASTER_KEY, if that was not set; stored nowhere else. */
  readonly masterKey?: string;
  /** Text of the recovery kit; stored nowhere else. */
  readonly recoveryKit?: string;
}

const firstTenant = 'default';

export async function initAppliance(options: InitOptions): Promise<Initialised> {
  const data = resolve(options.data);
  const hosts = options.hosts?.length ? hostList(options.hosts) : [anyHost];
  if (options.store) return initShared(options.store, data, hosts, options);
  await refuseUnlessNew(data);
  const { lock, giveUp } = await makeAndHold(data);
  try {
    await refuseUnlessNew(data);
    const made = await fill(data, hosts, await custodiansFor(data, options));
    lock.release();
    return made;
  } catch (error) {
    await giveUp();
    throw systemError(error, data);
  }
}

/** Throws `refused` if there is an appliance, or anything else. */
export async function refuseUnlessNew(data: string): Promise<void> {
  const state = await dataDirState(data);
  if (state === 'foreign') throw foreign(data);
  if (state === 'unrestored') throw unrestored(data);
  if (state === 'node') throw ofNode(data);
  if (state === 'standby') throw isStandby(data);
  if (state === 'moved') throw moved(data);
  if (state !== 'whole') return;
  throw new KmsError('refused', `${data}: is initialised already; nothing was changed`, {
    hint: 'serve it with `kms serve`, or give another directory with --data',
  });
}

interface FirstCustodians {
  readonly first: NewCustodian;
  readonly kit: NewCustodian | undefined;
}

async function custodiansFor(data: string, options: InitOptions): Promise<FirstCustodians> {
  const { custodian, recoveryKit } = options;
  const first = await newCustodian(custodian ?? (await usualCustodian(data, options)));
  return { first, kit: recoveryKit ? await newCustodian({ kind: 'recovery-kit' }) : undefined };
}

async function usualCustodian(data: string, { keyFile, env }: InitOptions): Promise<CustodianRequest> {
  if (keyFile === undefined) {
    if (await environmentSource(env).find()) return { kind: 'env', env };
    if (await credentialSource(env).find()) return { kind: 'credential', env };
  }
  return { kind: 'keyfile', file: keyFile ?? defaultKeyFile(data) };
}

/** Creates the appliance in a database. Here too the seal is written last. */
async function initShared(
  address: StoreSource,
  data: string,
  hosts: readonly string[],
  options: InitOptions,
): Promise<Initialised> {
  const { beginNode, holdNodeDirectory, readNode, SharedNode } = await import('../cluster/shared-node.ts');
  const { SharedStores } = await import('../cluster/shared-stores.ts');
  const { lock, giveUp } = await holdNodeDirectory(data);
  try {
    const files = nodeFiles(data);
    const known = await readNode(files);
    if (known) {
      throw new KmsError('refused', `${data}: is the directory of a node of the appliance ${known.appliance}`, {
        hint: 'serve that one with `kms serve --store URL`, or name another directory with --data',
      });
    }
    const node = await SharedNode.connect(address);
    try {
      await node.needSound(Date.now);
      await node.makeRoom();
      const { first, kit } = await custodiansFor(data, options);
      const [seal, dir] = firstSeal(first, kit);
      const nobody = { sealed: () => {}, rotated: () => {} };
      const shared = new SharedStores(node, new SealKeeper(seal, node.seal), nobody);
      try {
        const stores = await makeStores({ place: shared, files, wasm: await sqlWasm() }, seal, dir, hosts);
        for (const name of [systemDir, tenantDir(dir)]) await shared.finish(name);
        await first.keep();
        await node.begin(seal);
        await beginNode(files, seal.applianceId);
        return initialised(data, stores, seal, first, kit);
      } catch (error) {
        if (!(await node.engine.readSeal())) await node.clear();
        throw error;
      }
    } finally {
      await node.close();
    }
  } catch (error) {
    await giveUp();
    throw systemError(error, data);
  } finally {
    lock.release();
  }
}

/** The first seal, and the random name of the tenant's store. */
function firstSeal(first: NewCustodian, kit: NewCustodian | undefined): [Seal, string] {
  const dir = toHex(systemRandom(8));
  const custodians = [first.custodian, ...(kit ? [kit.custodian] : [])] as const;
  const made = sealFor(custodians, systemRandom);
  for (const { proofKey } of custodians) proofKey.fill(0);
  return [made.withStore(systemDir).withStore(dir), dir];
}

function initialised(
  data: string,
  stores: Pick<Initialised, 'tenant' | 'accountId' | 'apiKey'>,
  seal: Seal,
  { custodian, shares, masterKey, keyFile }: NewCustodian,
  kit: NewCustodian | undefined,
): Initialised {
  const { fingerprint } = seal;
  seal.wipe();
  return {
    ...stores,
    applianceId: seal.applianceId,
    fingerprint,
    data,
    keyFile: keyFile?.place ?? defaultKeyFile(data),
    keyFileMade: keyFile?.made ?? false,
    custodian: custodian.kind,
    ...(shares && { shares }),
    ...(masterKey !== undefined && { masterKey }),
    ...(kit?.recoveryCode !== undefined && {
      recoveryKit: kitText(seal.applianceId, kit.custodian.id, kit.recoveryCode),
    }),
  };
}

async function fill(data: string, hosts: readonly string[], { first, kit }: FirstCustodians): Promise<Initialised> {
  const files = nodeFiles(data);
  await files.replace(
    initMark,
    utf8('an initialisation is under way, or was cut off: the next `kms init` starts over\n'),
  );
  try {
    await removeStores(data);
    const [seal, dir] = firstSeal(first, kit);
    const stores = await makeStores(storesIn({ root: data, files, wasm: await sqlWasm() }), seal, dir, hosts);
    await first.keep();
    await files.replace(sealFile, seal.toBytes());
    await files.remove(initMark);
    return initialised(data, stores, seal, first, kit);
  } catch (error) {
    if ((await dataDirState(data)) === 'unfinished') {
      await removeStores(data);
      await files.remove(initMark);
    }
    throw error;
  }
}

function kitText(applianceId: string, id: string, code: string): string {
  return recoveryKitText({ applianceId, id, code, day: new Date().toISOString().slice(0, 10) });
}

async function makeStores(
  world: StoreWorld,
  seal: Seal,
  dir: string,
  hosts: readonly string[],
): Promise<Pick<Initialised, 'tenant' | 'accountId' | 'apiKey'>> {
  const outside = systemWorld();
  const now = outside.now();
  const tenant = { id: outside.newId('tenant'), name: firstTenant, hosts };

  const keys = seal.keysFor(dir);
  await world.place.create(tenantDir(dir), keys, now);
  const store = await openTenantStore(world, tenantDir(dir), keys);
  const first = await store.transaction((tx) => bootstrap({ tx, world: outside })).finally(() => store.close());

  const systemKeys = seal.keysFor(systemDir);
  await world.place.create(systemDir, systemKeys, now);
  const system = await openSystemStore(world, systemKeys);
  await system
    .transaction(({ tenants }) => tenants.insert({ ...tenant, dir, limits: {}, createdAt: now, updatedAt: now }))
    .finally(() => system.close());
  return { tenant, accountId: first.account.id, apiKey: first.apiKey };
}

/** Removes leftovers of an earlier try. There is no seal, so no key to them exists. */
async function removeStores(data: string): Promise<void> {
  for (const name of [systemDir, 'tenants']) await rm(inDir(data, name), { recursive: true, force: true });
}
