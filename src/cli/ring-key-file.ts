// Files of ring keys: the private keys of each ring of each appliance in one PEM file, mode 0600, in the user's
// configuration directory, never overwritten by another ring's. Beside them are the public keys, as first seen, of
// rings that files were encrypted for without a private key.
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

/** Directory of the keys of the appliance's rings; undefined if the appliance does not reveal its id. */
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
 * Default path for the private key of a new ring: in a directory per appliance, so that rings with the same name do not
 * collide. If the file exists, such as for another tenant's ring, it is in a subdirectory per tenant.
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
 * Files that may have the ring's private key, at least one, likeliest first. The appliance is asked for the tenant only
 * if some tenant has its own file of that name.
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

/** Files of this name in the tenants' directories. */
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

/** A ring's private key, and the earlier ones if its pair was changed. */
export type RingPrivateKeys = readonly RingPrivateKey[];

/** The private keys in the file of --private-key; undefined without the option. */
export async function namedRingKey(
  cli: Cli<{ '--private-key': string | undefined }>,
): Promise<RingPrivateKeys | undefined> {
  const named = cli.get('--private-key');
  return named === undefined ? undefined : readRingKey(named);
}

/** The private keys kept for the ring; they may include those of another tenant's ring with the same name. */
export async function keptRingKey(cli: Cli, appliance: Appliance, ring: string): Promise<RingPrivateKeys> {
  return (await keptFiles(cli, appliance, ring)).flatMap(({ keys }) => keys);
}

/** A file with private keys of a ring. */
export interface RingKeyFile {
  readonly path: string;
  readonly keys: RingPrivateKeys;
}

type RingKeyFiles = readonly [RingKeyFile, ...RingKeyFile[]];

/** Readable files, likeliest first. */
async function keptFiles(cli: Cli, appliance: Appliance, ring: string): Promise<RingKeyFiles> {
  let problem: unknown;
  try {
    const paths = await keptPaths(cli, appliance, ring);
    const read = await Promise.allSettled(paths.map(async (path) => ({ path, keys: await readRingKey(path) })));
    const [first, ...others] = read.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    if (first) return [first, ...others];
    problem = read.find((each) => each.status === 'rejected')?.reason;
  } catch (cause) {
    // Such as no home directory, or an ambiguous tenant.
    problem = cause;
  }
  if (!isOfFile(problem) || problem.hint !== undefined || problem.fields !== undefined) throw problem;
  throw new KmsError(problem.code, problem.message, {
    hint: `name the file that has the private key of ${ring} with --private-key FILE`,
  });
}

/**
 * Whether another file would help: not if the appliance was asked and is sealed, unreachable, or refuses the caller.
 */
export function isOfFile(problem: unknown): problem is KmsError {
  return problem instanceof KmsError && (problem.code === 'refused' || problem.code === 'invalid');
}

/**
 * The named file, or else the candidates, which are never mixed: first the one with the private key of that public key.
 * Throws what `keptRingKey` throws.
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

/**
 * Private keys of all rings of all appliances, as long as that is quick: at most 1,000 files. Unreadable ones are
 * skipped.
 */
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
 * The ring's public key as known on this machine. The appliance's answer is remembered on first use (a pin), by the ids
 * of appliance and tenant, and over the network also by address, since the ids are only the appliance's claim. Throws
 * `refused` if it later answers another key.
 */
export async function knownPublicKey(cli: Cli, appliance: Connection, answered: AnsweredRing): Promise<string> {
  const { ringname, publicKey } = answered;
  const { paths, older } = await knownPlaces(cli, appliance, ringname);
  // Nothing is remembered as long as one differs.
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

/** Names all files at once, so that people can fix it in one step. */
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
  /** For the appliance's tenant, and for its address. */
  readonly paths: readonly [string, ...string[]];
  /** Path from before tenants were told apart, unless it is another tenant's; undefined once it is no longer needed. */
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

/** Replaces the remembered public key of the ring with the owner's present one. `own`: the private keys here. */
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
    // Another tenant's stays unchanged.
    if (ours.some((key) => isSamePublicKey(key, known))) replaced.push(older);
    else if (!ours.includes(publicKey)) await remember(paths[0], publicKey);
  }
  for (const path of replaced) {
    await replaceText(path, readPublicKey, () => ({ text: `${publicKey}\n`, result: undefined }));
  }
}

/** False if another command did so at the same time: only one comes first. */
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
 * Uses OpenSSL for key agreement if it passes known-answer tests. This saves a tenth of the cost of a decrypt
 * (docs/performance.md).
 */
export async function prepareRingCrypto(): Promise<void> {
  const { startAgreement } = await import('../platform/native-agreement.ts');
  startAgreement();
}

export async function readRingKey(path: string): Promise<RingPrivateKeys> {
  await prepareRingCrypto();
  return readPrivateKeys(await readSecretBytes(path, 'the private key'), path);
}

/** Adds a hybrid private key to the file of a ring, unless an unused one was added before. */
export async function addHybridKey(
  path: string,
): Promise<{ readonly publicKey: string; readonly keys: RingPrivateKeys }> {
  const read = (path: string) => readPem(path, 'the private key', readSecretBytes);
  return replaceText(path, read, (text) => {
    const { privateKey, publicKey } = withHybridKey(readPrivateKeys(text, path));
    return { text: privateKey, result: { publicKey, keys: readPrivateKeys(privateKey, path) } };
  });
}

/** A place reserved for a private key before the key exists. */
interface KeyPlace {
  readonly path: string;
  /** Saves the key (base64 PKCS#8 DER). */
  keep(privateKey: string): Promise<Kept>;
  release(): Promise<void>;
}

/** Where a private key is now, undefined if nowhere; and why it is not in its place. */
interface Kept {
  readonly at: string | undefined;
  readonly problem?: unknown;
}

/**
 * Makes sure that the private key of a new ring can be saved, at --private-key-out or in the default place. Where a key
 * of that name is kept already, and none of a tenant's own, the answer that makes the ring tells the tenant and so the
 * place: a request for that alone would leave a record of its own.
 */
export async function reserveKeyPlace(
  cli: Cli<{ '--private-key-out': string | undefined }>,
  appliance: Appliance,
  kind: RingKind,
  ring: string,
): Promise<KeyPlace> {
  const named = cli.get('--private-key-out');
  const place = named === undefined ? () => newKeyPlace(cli, appliance, kind, ring) : undefined;
  const later = named === undefined ? await pathForLater(cli, appliance, kind, ring) : undefined;
  const path = named ?? later ?? (await newKeyPlace(cli, appliance, kind, ring));
  const file = await newFile(path, 0o600, 'move it away, or name another file with --private-key-out FILE');
  return {
    path: later === undefined ? path : dirname(path),
    keep: (privateKey) => keep({ file, path, place, isLater: later !== undefined }, privateKey),
    release: () => file.discard(),
  };
}

/** A free path beside the kept key, if the place depends on the tenant and nothing is in the way there. */
async function pathForLater(cli: Cli, appliance: Appliance, kind: RingKind, ring: string): Promise<string | undefined> {
  const directory = await applianceDirectory(cli, appliance, kind);
  const name = fileName(ring);
  if (directory === undefined || !(await isThere(join(directory, name)))) return undefined;
  return (await ofTenants(directory, name)).length === 0 ? join(directory, `.new.${name}`) : undefined;
}

/** Path of a new key; its directory is made. */
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
  /** Determines the path again; absent if the caller chose it. */
  readonly place: (() => Promise<string>) | undefined;
  /** Whether the path is only determined now. */
  readonly isLater: boolean;
}

async function keep({ file, path, place, isLater }: Place, privateKey: string): Promise<Kept> {
  let at: string | undefined;
  try {
    await file.handle.writeFile(privateKeyPem(privateKey));
    await file.handle.sync();
    at = file.temporary;
    const name = (isLater ? await place?.() : undefined) ?? path;
    await file.commit(name).catch(async (error) => {
      // Another tenant's key may have come first.
      const other = (await place?.()) ?? name;
      if (other === name) throw error;
      await file.commit(other);
      at = other;
    });
    return { at: at === file.temporary ? name : at };
  } catch (problem) {
    if (at === undefined) await file.discard();
    return { at, problem };
  }
}

/**
 * Saves the private key of a new ring, then prints the ring. A key that cannot be saved goes to stdout rather than
 * being lost. Throws `refused`, which says where the key is, if either fails.
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
    const where = isLost ? 'it is on stdout and nowhere else' : `it is in ${at}, move it to a safe place`;
    throw new KmsError('refused', `cannot keep the private key in ${place.path}: ${reasonOf(problem)}`, {
      hint: `the ring is made and needs it: ${where}`,
    });
  }
  await say(cli.io, `the private key is in ${at}; nobody else has it, so keep a copy of it safe`);
}

/** Validated before the name becomes part of a path. */
export function checkedRingName(ring: string, noun: 'ring' | 'managed key' = 'ring'): string {
  if (isRingName(ring)) return ring;
  throw new KmsError('invalid', `"${ring}" cannot name a ${noun}`, {
    hint: 'a name has 1 to 128 letters, digits, dots, dashes and underscores, and begins with a letter or digit',
  });
}
