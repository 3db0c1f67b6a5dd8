// The private keys of rings as they are kept: one PEM file for each ring of each appliance, mode 0600, in the user's
// configuration directory, written once and never overwritten. Beside them the public keys of rings that were encrypted
// for without one, as they were at first.
import { access, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { AnsweredRing } from '../client/recipients.ts';
import {
  fingerprintOf,
  isSamePublicKey,
  kemOfPublicKey,
  privateKeyPem,
  publicKeyOf,
  type RingPrivateKey,
  readPrivateKeys,
  withHybridKey,
} from '../client/ring-keys.ts';
import { KmsError, reasonOf } from '../errors.ts';
import { isRingName } from '../model/names.ts';
import type { Cli } from './command.ts';
import type { Connection } from './connect.ts';
import { fileError, type NewFile, newFile, readPem, readSmallText, replaceText } from './files.ts';
import { configDirectory, say, write } from './io.ts';
import { showOnce } from './output.ts';
import { readSecretBytes } from './secrets.ts';

type RingKind = 'rings' | 'asym';

type Appliance = Pick<Connection, 'applianceId' | 'tenantId'>;

/** Where the keys are of the appliance's rings; undefined for one that does not tell its id. */
async function applianceDirectory(cli: Cli, { applianceId }: Appliance, kind: RingKind): Promise<string | undefined> {
  const id = await applianceId();
  return id === undefined ? undefined : join(configDirectory(cli.io), kind, id);
}

/** The path for an appliance that does not tell its id. */
function unnamedPath(cli: Cli, kind: RingKind, ring: string): string {
  return join(configDirectory(cli.io), kind, fileName(ring));
}

function fileName(ring: string): string {
  return `${checkedRingName(ring).toLowerCase()}.key`;
}

/**
 * Where the private key of a new ring goes unless somebody says otherwise: in a directory of its appliance, so that
 * rings of one name do not meet. Where one is there already, such as another tenant's, in a directory of the tenant in
 * that one.
 */
async function newKeyPath(cli: Cli, appliance: Appliance, kind: RingKind, ring: string): Promise<string> {
  const directory = await applianceDirectory(cli, appliance, kind);
  if (directory === undefined) return unnamedPath(cli, kind, ring);
  const path = join(directory, fileName(ring));
  if (!(await isThere(path))) return path;
  const tenant = await appliance.tenantId();
  return tenant === undefined ? path : join(directory, tenant, fileName(ring));
}

/**
 * The files that may have the ring's private key, one or more, those that are likelier first. Which tenant it is, is
 * asked only where a tenant has a file of that name for itself.
 */
async function keptPaths(cli: Cli, appliance: Appliance, ring: string): Promise<readonly [string, ...string[]]> {
  const directory = await applianceDirectory(cli, appliance, 'rings');
  if (directory === undefined) return [unnamedPath(cli, 'rings', ring)];
  const shared = join(directory, fileName(ring));
  const inTenants = await ofTenants(directory, fileName(ring));
  const tenant = inTenants.length > 0 ? await appliance.tenantId() : undefined;
  const own = join(directory, tenant ?? '', fileName(ring));
  const isShared = await isThere(shared);
  if (tenant !== undefined && inTenants.includes(own)) return isShared ? [own, shared] : [own];
  return [shared];
}

/** The files of one name in the directories of tenants. */
async function ofTenants(directory: string, name: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  const paths = entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name, name));
  const areThere = await Promise.all(paths.map(isThere));
  return paths.filter((_, n) => areThere[n]);
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** A ring's private key, and those before it of a ring that changed its pair. */
export type RingPrivateKeys = readonly RingPrivateKey[];

/** The private keys in the file that --private-key names; undefined where it names none. */
export async function namedRingKey(
  cli: Cli<{ '--private-key': string | undefined }>,
): Promise<RingPrivateKeys | undefined> {
  const named = cli.get('--private-key');
  return named === undefined ? undefined : readRingKey(named);
}

/** The private keys that are kept for the ring of the appliance, and may be those of another tenant's beside them. */
export async function keptRingKey(cli: Cli, appliance: Appliance, ring: string): Promise<RingPrivateKeys> {
  return (await keptFiles(cli, appliance, ring)).flatMap(({ keys }) => keys);
}

/** A file with private keys of a ring. */
export interface RingKeyFile {
  readonly path: string;
  readonly keys: RingPrivateKeys;
}

type RingKeyFiles = readonly [RingKeyFile, ...RingKeyFile[]];

/** Those that can be read, the likelier first. */
async function keptFiles(cli: Cli, appliance: Appliance, ring: string): Promise<RingKeyFiles> {
  let problem: unknown;
  try {
    const paths = await keptPaths(cli, appliance, ring);
    const read = await Promise.allSettled(paths.map(async (path) => ({ path, keys: await readRingKey(path) })));
    const [first, ...others] = read.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    if (first) return [first, ...others];
    problem = read.find((each) => each.status === 'rejected')?.reason;
  } catch (cause) {
    // Such as who has no home directory, or leaves several tenants.
    problem = cause;
  }
  if (!isOfFile(problem) || problem.hint !== undefined || problem.fields !== undefined) throw problem;
  throw new KmsError(problem.code, problem.message, {
    hint: `name the file that has the private key of ${ring} with --private-key FILE`,
  });
}

/** Whether another file would help: not where the appliance was asked, and is sealed, away, or knows no such caller. */
export function isOfFile(problem: unknown): problem is KmsError {
  return problem instanceof KmsError && (problem.code === 'refused' || problem.code === 'invalid');
}

/**
 * The one that is named, or else those that may be the ring's, which are never mixed: the one that has the private key
 * of that public key first. Throws what `keptRingKey` throws.
 */
export async function ringKeyFiles(
  cli: Cli<{ '--private-key': string | undefined }>,
  appliance: Appliance,
  ring: { readonly name: string; readonly publicKey: string },
): Promise<RingKeyFiles> {
  const path = cli.get('--private-key');
  if (path !== undefined) return [{ path, keys: await readRingKey(path) }];
  const files = await keptFiles(cli, appliance, ring.name);
  const [first] = files;
  const fits = files.find(({ keys }) => keys.some((key) => isSamePublicKey(publicKeyOf(key), ring.publicKey))) ?? first;
  return [fits, ...files.filter((file) => file !== fits)];
}

/** Of all rings of all appliances, the most at which that is still quick; what cannot be read is passed over. */
export async function allKeptRingKeys(cli: Cli): Promise<RingPrivateKeys> {
  const directory = join(configDirectory(cli.io), 'rings');
  const names = await readdir(directory, { recursive: true }).catch(() => []);
  const keys: RingPrivateKey[] = [];
  for (const name of names.filter((each) => each.endsWith('.key')).slice(0, 1000)) {
    keys.push(...(await readRingKey(join(directory, name)).catch(() => [])));
  }
  if (keys.length > 0) return keys;
  throw new KmsError('refused', `there is no private key in ${directory}`, {
    hint: 'name the file that has it with --private-key FILE',
  });
}

/**
 * The public key of the ring as this machine knows it. What the appliance says is remembered at first use, under its id
 * and its tenant's, and over the network under its address too: the ids are its own to say. Throws `refused` when it
 * says another later.
 */
export async function knownPublicKey(cli: Cli, appliance: Connection, answered: AnsweredRing): Promise<string> {
  const { ringname, publicKey } = answered;
  const { paths, older } = await knownPlaces(cli, appliance, ringname);
  // None is remembered beside one that differs.
  const differing: string[] = [];
  for (const path of older === undefined ? paths : [...paths, older]) {
    if ((await isThere(path)) && !(await isIn(path, publicKey))) differing.push(path);
  }
  if (differing.length > 0) throw changedSince(differing, answered, older);
  for (const path of paths) {
    if (await isThere(path)) continue;
    if (!(await remember(path, publicKey))) {
      if (!(await isIn(path, publicKey))) throw changedSince([path], answered);
    } else if (path === paths[0] && older === undefined) {
      await say(
        cli.io,
        `the public key of ${ringname} is remembered in ${path}; another one will be refused; its fingerprint: ${fingerprintOf(publicKey)}`,
      );
    }
  }
  return publicKey;
}

async function isIn(path: string, publicKey: string): Promise<boolean> {
  const known = await readPublicKey(path);
  if (kemOfPublicKey(known)) return isSamePublicKey(known, publicKey);
  throw new KmsError('invalid', `${path} holds no public key`, { hint: 'put it right, or remove it' });
}

/** Names all places at once, so that nobody has to come back for the next. */
function changedSince(paths: readonly string[], { ringname, publicKey }: AnsweredRing, older?: string): KmsError {
  const orIf = older !== undefined && paths.includes(older) ? ", or if this one is another tenant's" : '';
  return new KmsError(
    'refused',
    `the appliance has another public key for the keyring ${ringname} than when it was first used from here: its fingerprint is now ${fingerprintOf(publicKey)}`,
    {
      hint: `nothing was encrypted; if the keyring's owner says that its key pair was changed${orIf}, remove ${paths.join(' and ')}`,
    },
  );
}

interface KnownPlaces {
  /** Of the appliance's tenant, and of its address. */
  readonly paths: readonly [string, ...string[]];
  /**
   * Where it was remembered before tenants were told apart, unless it is another tenant's; undefined once that is over.
   */
  readonly older?: string;
}

async function knownPlaces(cli: Cli, appliance: Connection, ring: string): Promise<KnownPlaces> {
  const name = fileName(ring).replace(/key$/, 'pub');
  const directory = (await applianceDirectory(cli, appliance, 'rings')) ?? join(configDirectory(cli.io), 'rings');
  const tenant = await appliance.tenantId();
  const paths: [string, ...string[]] = [join(directory, tenant ?? '', name)];
  if (appliance.way === 'network') {
    const address = encodeURIComponent(new URL(appliance.baseUrl).host);
    paths.push(join(configDirectory(cli.io), 'addresses', address, name));
  }
  const older = join(directory, name);
  if (tenant === undefined || !(await isThere(older))) return { paths };
  const known = await readPublicKey(older);
  const ofTenant = await Promise.all(
    (await ofTenants(directory, name)).map(async (path) => [path, await readPublicKey(path)]),
  );
  const isOver = ofTenant.some(([path, key = '']) => path === paths[0] || isSamePublicKey(key, known));
  return isOver ? { paths } : { paths, older };
}

function readPublicKey(path: string): Promise<string> {
  return readSmallText(path, 'the public key');
}

/** Where the ring's public key is remembered, it is now that one, of the owner's. `own`: the private keys here. */
export async function rememberOwn(
  cli: Cli,
  appliance: Connection,
  { name, publicKey }: { readonly name: string; readonly publicKey: string },
  own: RingPrivateKeys,
): Promise<void> {
  const { paths, older } = await knownPlaces(cli, appliance, name);
  const replaced: string[] = [];
  for (const path of paths) if (await isThere(path)) replaced.push(path);
  if (older !== undefined) {
    const [known, ours] = [await readPublicKey(older), own.map(publicKeyOf)];
    // Another's stays as it is.
    if (ours.some((key) => isSamePublicKey(key, known))) replaced.push(older);
    else if (!ours.includes(publicKey)) await remember(paths[0], publicKey);
  }
  for (const path of replaced) {
    await replaceText(path, readPublicKey, () => ({ text: `${publicKey}\n`, result: undefined }));
  }
}

/** False where another command did so at the same time: one of them is first. */
async function remember(path: string, publicKey: string): Promise<boolean> {
  const { makeDirs } = await import('../platform/data-dir.ts');
  await makeDirs(dirname(path)).catch((error) => {
    throw fileError('make the directory', dirname(path), error, 'give the public key with --public-key FILE');
  });
  const file = await newFile(path, 0o600, 'it was just made');
  try {
    await file.handle.writeFile(`${publicKey}\n`);
    await file.commit();
  } catch (error) {
    await file.discard();
    if (await isThere(path)) return false;
    throw fileError('remember the public key in', path, error);
  }
  return true;
}

/**
 * Key agreement by OpenSSL, where that gives the known answers: a tenth of what a decrypt costs (docs/performance.md).
 */
export async function prepareRingCrypto(): Promise<void> {
  const { startAgreement } = await import('../platform/native-agreement.ts');
  startAgreement();
}

export async function readRingKey(path: string): Promise<RingPrivateKeys> {
  await prepareRingCrypto();
  return readPrivateKeys(await readSecretBytes(path, 'the private key'), path);
}

/** Adds a hybrid private key to the file of a ring's, or finds the one that was added before and is not used yet. */
export async function addHybridKey(
  path: string,
): Promise<{ readonly publicKey: string; readonly keys: RingPrivateKeys }> {
  const read = (path: string) => readPem(path, 'the private key', readSecretBytes);
  return replaceText(path, read, (text) => {
    const { privateKey, publicKey } = withHybridKey(readPrivateKeys(text, path));
    return { text: privateKey, result: { publicKey, keys: readPrivateKeys(privateKey, path) } };
  });
}

/** A place for a private key that does not exist yet, made sure of before it does. */
interface KeyPlace {
  readonly path: string;
  /** Keeps the key (base64 PKCS#8 DER). */
  keep(privateKey: string): Promise<Kept>;
  release(): Promise<void>;
}

/** Where a private key is now, undefined for nowhere; and why that is not its place. */
interface Kept {
  readonly at: string | undefined;
  readonly problem?: unknown;
}

/**
 * Makes sure that the private key of a ring about to be made can be kept, where --private-key-out says or in its usual
 * place.
 */
export async function reserveKeyPlace(
  cli: Cli<{ '--private-key-out': string | undefined }>,
  appliance: Appliance,
  kind: RingKind,
  ring: string,
): Promise<KeyPlace> {
  const named = cli.get('--private-key-out');
  const place = named === undefined ? () => newKeyPlace(cli, appliance, kind, ring) : undefined;
  const path = named ?? (await newKeyPlace(cli, appliance, kind, ring));
  const file = await newFile(path, 0o600, 'move it away, or name another file with --private-key-out FILE');
  return {
    path,
    keep: (privateKey) => keep({ file, path, place }, privateKey),
    release: () => file.discard(),
  };
}

/** With the directory that it is in. */
async function newKeyPlace(cli: Cli, appliance: Appliance, kind: RingKind, ring: string): Promise<string> {
  const path = await newKeyPath(cli, appliance, kind, ring);
  const { makeDirs } = await import('../platform/data-dir.ts');
  await makeDirs(dirname(path)).catch((error) => {
    throw fileError('make the directory', dirname(path), error, 'name another place with --private-key-out FILE');
  });
  return path;
}

interface Place {
  readonly file: NewFile;
  readonly path: string;
  /** Finds it anew; absent where somebody named it. */
  readonly place: (() => Promise<string>) | undefined;
}

async function keep({ file, path, place }: Place, privateKey: string): Promise<Kept> {
  let at: string | undefined;
  try {
    await file.handle.writeFile(privateKeyPem(privateKey));
    await file.handle.sync();
    at = file.temporary;
    await file.commit().catch(async (error) => {
      // Another tenant's may have come first.
      const other = (await place?.()) ?? path;
      if (other === path) throw error;
      await file.commit(other);
      at = other;
    });
    return { at: at === file.temporary ? path : at };
  } catch (problem) {
    if (at === undefined) await file.discard();
    return { at, problem };
  }
}

/**
 * Keeps the private key of a ring that was just made, then shows what is to be shown of it. A key that cannot be kept
 * goes to stdout rather than being lost. Throws `refused`, which says where the key is, where either fails.
 */
export async function keepAndShow(
  cli: Cli,
  place: KeyPlace,
  made: { readonly name: string; readonly privateKey: string },
  print: () => Promise<void>,
): Promise<void> {
  const { at, problem } = await place.keep(made.privateKey);
  const show = async (): Promise<void> => {
    await print();
    // With --json the answer has it.
    if (at === undefined && !cli.json) await write(cli.io.stdout, privateKeyPem(made.privateKey));
  };
  const isLost = at === undefined;
  await showOnce(
    show(),
    `the ring ${made.name} was made, and its private key is ${isLost ? 'lost' : `in ${at}`}`,
    isLost ? 'nobody can read what is encrypted for it: make another' : 'keep a copy of it safe',
  );
  if (problem !== undefined) {
    const where = isLost ? 'it stands on stdout and nowhere else' : `it is in ${at}, move it to a safe place`;
    throw new KmsError('refused', `cannot keep the private key in ${place.path}: ${reasonOf(problem)}`, {
      hint: `the ring is made and needs it: ${where}`,
    });
  }
  await say(cli.io, `the private key is in ${at}; nobody else has it, so keep a copy of it safe`);
}

/** Looked at before the name becomes part of a path. */
export function checkedRingName(ring: string): string {
  if (isRingName(ring)) return ring;
  throw new KmsError('invalid', `"${ring}" cannot name a ring`, {
    hint: 'a name has 1 to 128 letters, digits, dots, dashes and underscores, and begins with a letter or digit',
  });
}
