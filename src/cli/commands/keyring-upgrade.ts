// Upgrades an X25519 keyring to a hybrid pair, and rewraps its earlier keys to it.
import type { KeyRing } from '../../api/keyrings.ts';
import type { Client } from '../../client/client.ts';
import { fingerprintOf, isSamePublicKey, kemOfPublicKey, publicKeyOf } from '../../client/ring-keys.ts';
import { KmsError } from '../../errors.ts';
import type { CliOf } from '../command.ts';
import { type Connection, withClient } from '../connect.ts';
import type { keyringUpgrade } from '../grammar/keyring.ts';
import { say, tell } from '../io.ts';
import { type Pair, printThing } from '../output.ts';
import {
  addHybridKey,
  checkedRingName,
  type RingKeyFile,
  type RingPrivateKeys,
  rememberOwn,
  ringKeyFiles,
} from '../ring-key-file.ts';
import { visible } from '../text.ts';
import { readPublicKey, ringPairs } from './keyring.ts';

type UpgradeCli = CliOf<typeof keyringUpgrade.upgrade>;

/** The ring as read when the command began. */
interface Upgrade {
  readonly cli: UpgradeCli;
  readonly client: Client;
  readonly appliance: Connection;
  readonly ring: KeyRing;
}

/** The owner's pair for a ring. */
interface OwnPair {
  readonly publicKey: string;
  /** File with its private key and the earlier ones; absent if only the public key was given. */
  readonly file?: RingKeyFile;
}

const hybrid = 'mlkem768-x25519';

/**
 * Gives an X25519 ring a new hybrid pair. Each step finds itself done if an earlier run was cut off after it: the
 * private key is in its file before the ring gets the public key, and the ring has that before it gets a key for it.
 */
export async function upgrade(cli: UpgradeCli): Promise<void> {
  const ringname = checkedRingName(cli.get('<NAME>'));
  const given = await readPublicKey(cli);
  refuseContradiction(cli, given);
  await withClient(cli, async (client, appliance) => {
    const { ring } = await client.getKeyring({ ringname });
    if (cli.get('--dry-run')) {
      const { left } = await countKeys(client, ring);
      return printThing(cli, { ring, rewrapped: 0, left }, [...ringPairs(ring), ['left', left]]);
    }
    const work = { cli, client, appliance, ring };
    const pair = await ownPair(work, given);
    const upgraded = pair && !cli.get('--prepare') ? await adopt(work, pair) : ring;
    if (cli.get('--rewrap') && pair?.file) return rewrap(cli, client, upgraded, pair.file.keys);
    await printThing(cli, { ring: upgraded }, ringPairs(upgraded));
  });
}

function refuseContradiction(cli: UpgradeCli, given: string | undefined): void {
  if (given !== undefined && kemOfPublicKey(given) !== hybrid) {
    throw cli.wrong(`--public-key: expected a public key of ${hybrid}`);
  }
  const prepare = cli.get('--prepare');
  if (given !== undefined && prepare) {
    throw cli.wrong(
      '--prepare and --public-key exclude each other: with a pair of your own there is nothing to add here',
    );
  }
  if (cli.get('--rewrap') && prepare) {
    throw cli.wrong('--prepare and --rewrap exclude each other: nothing is wrapped to the new pair before it is used');
  }
  if (cli.get('--put-back') && prepare) {
    throw cli.wrong('--prepare and --put-back exclude each other: what is put back is there already');
  }
  if (!cli.get('--rewrap')) cli.refuseWithout('--rewrap', ['--dry-run']);
}

/**
 * The owner's hybrid pair for the ring; undefined if no file here shows whose the current pair is: the command then
 * leaves it alone. The appliance's public key is trusted only if the file with its private key also opens an earlier
 * key of the ring: otherwise an attacker's pair would get the bytes of all keys. A pair that is not the owner's is
 * replaced only if the owner asks for it. Throws `refused`.
 */
async function ownPair(work: Upgrade, given: string | undefined): Promise<OwnPair | undefined> {
  const { cli, client, ring } = work;
  const found = await ownFile(work, given ?? ring.publicKey);
  const { file, opens, problem } = found;
  // Decided by its bytes, not by the name the appliance gives it.
  const isHybrid = kemOfPublicKey(ring.publicKey) === hybrid;
  if (given !== undefined) {
    if (cli.get('--rewrap') && !file) throw problem;
    if (cli.get('--rewrap') && opens === 'none') throw opensNone(ring);
    if (isHybrid && !isSamePublicKey(given, ring.publicKey)) await refuseRollback(work, given);
    return { publicKey: given, ...(file && opens !== 'none' && { file }) };
  }
  const hasPair = !!file && hasKeyOf(file, ring.publicKey);
  if (file && hasPair && opens !== 'none') {
    return isHybrid ? { publicKey: ring.publicKey, file } : withHybrid(work, file);
  }
  if (file && !hasPair && opens === 'earlier') {
    const newest = file.keys.at(-1);
    const isMade = newest?.kem === hybrid;
    if (isMade) await refuseRollback(work, publicKeyOf(newest), found);
    // Otherwise two people who each made a pair would keep replacing each other's.
    if (!cli.get('--put-back') || (isHybrid && !isMade)) throw notOurs(work, found, isMade);
    return isMade ? { publicKey: publicKeyOf(newest), file } : withHybrid(work, file);
  }
  const isLeft = isHybrid && (hasPair || !file) && !cli.get('--rewrap') && (await isActive(client, ring));
  if (isLeft) {
    const why = file
      ? `the private key of its pair is in ${file.path}, which opens none of its earlier keys`
      : 'the private key of its pair is not here';
    await say(cli.io, visible(`${ring.name} is hybrid already and was left as it is: ${why}`));
    return undefined;
  }
  if (!file) throw problem;
  throw hasPair ? opensNone(ring) : hasNone(ring, file);
}

interface Found {
  /** The ring's own file, else a candidate; if absent, `problem` says why. */
  readonly file?: RingKeyFile;
  readonly problem?: KmsError;
  /** Whether the file opens keys from before the ring's present pair; `unknown` if there are none. */
  readonly opens?: 'earlier' | 'none' | 'unknown';
  /** Another file here: not the ring's, although it has the private key of the present pair. */
  readonly elsewhere?: string;
}

/** Finds the ring's file among the candidates, by what it opens. */
async function ownFile({ cli, client, appliance, ring }: Upgrade, publicKey: string): Promise<Found> {
  const { openEarlier } = await import('../../client/rewrapping.ts');
  let files: readonly [RingKeyFile, ...RingKeyFile[]];
  try {
    files = await ringKeyFiles(cli, appliance, { name: ring.name, publicKey });
  } catch (problem) {
    if (cli.get('--private-key') !== undefined || !(problem instanceof KmsError)) throw problem;
    return { problem };
  }
  for (const file of files) {
    const opens = await openEarlier({ client, ring, privateKeys: file.keys });
    if (opens === false) continue;
    const isOther = file !== files[0] && hasKeyOf(files[0], ring.publicKey);
    return { file, opens: opens ? 'earlier' : 'unknown', ...(isOther && { elsewhere: files[0].path }) };
  }
  return { file: files[0], opens: 'none' };
}

function hasKeyOf({ keys }: RingKeyFile, publicKey: string): boolean {
  return keys.some((key) => publicKeyOf(key) === publicKey);
}

async function isActive(client: Client, ring: KeyRing): Promise<boolean> {
  const { publicKey } = await client.getKey({ ringname: ring.name, keyId: ring.activeKey });
  return publicKey === ring.publicKey;
}

/** Adds a hybrid key to the file, unless an unused one is at its end already. */
async function withHybrid({ cli }: Upgrade, { path }: RingKeyFile): Promise<OwnPair> {
  const { publicKey, keys } = await addHybridKey(path);
  const what = cli.get('--prepare')
    ? 'hand it to all who use the keyring, then run this without --prepare'
    : 'everybody who uses the keyring needs this file, with both, from now on; programs that encrypt with ' +
      '--recipient must accept the new public key, as their error says';
  await say(cli.io, visible(`${path} has the earlier private key and a hybrid one: ${what}`));
  return { publicKey, file: { path, keys } };
}

/** An earlier pair of the ring is restored only on request: there may have been a reason to move on from it. */
async function refuseRollback({ cli, client, ring }: Upgrade, publicKey: string, found: Found = {}): Promise<void> {
  if (cli.get('--put-back')) return;
  const before = await madeFor(client, ring);
  if (![...before.keys()].some((each) => isSamePublicKey(each, publicKey))) return;
  const what = found.file ? `the pair in ${found.file.path}` : 'that pair';
  throw new KmsError(
    'refused',
    `the keyring ${ring.name} had ${what} before and has another now${inOther(found)}: that would be a rollback, and nothing was changed`,
    {
      hint: `if its owner changed the pair, get the file that has the present one; if not, \`${putBack(cli, ring)}\` puts the earlier one back`,
    },
  );
}

function notOurs({ cli, ring }: Upgrade, found: Found, isMade: boolean): KmsError {
  const { name, publicKey } = ring;
  const path = found.file?.path;
  const back = `\`${putBack(cli, ring)}\` puts the pair in ${path} in its place`;
  const own = '--public-key FILE gives it one whose private key is kept elsewhere';
  if (kemOfPublicKey(publicKey) !== hybrid) {
    return new KmsError(
      'refused',
      `the public key of the keyring ${name} is not one of yours${inOther(found)}: no key was wrapped to it`,
      { hint: `if its owner changed the pair, get the file that has the present one; if not, ${back}, or ${own}` },
    );
  }
  return new KmsError(
    'refused',
    `the keyring ${name} was upgraded already, to a pair that is not in ${path}${inOther(found)}: nothing was changed`,
    {
      hint: `get the file with both private keys from the person who upgraded it (fingerprint of the pair: ${fingerprintOf(publicKey)}); if nobody who may do so did, ${isMade ? `${back}, or ${own}` : own}`,
    },
  );
}

/** The same command with --put-back. */
function putBack(cli: UpgradeCli, { name }: KeyRing): string {
  const typed = (['--private-key', '--public-key'] as const).flatMap((option) =>
    cli.isTyped(option) ? [`${option} ${cli.get(option)}`] : [],
  );
  return visible(
    ['kms keyring upgrade', name, ...typed, '--put-back', ...(cli.get('--rewrap') ? ['--rewrap'] : [])].join(' '),
  );
}

function inOther({ elsewhere }: Found): string {
  return elsewhere === undefined ? '' : ` (its private key is in ${elsewhere}, which opens none of its earlier keys)`;
}

function hasNone({ name }: KeyRing, { path }: RingKeyFile): KmsError {
  return new KmsError('invalid', `${path} does not have the private key of the keyring ${name}`, {
    hint: 'name the file that has it with --private-key FILE, or give the public key of a pair of yours',
  });
}

function opensNone({ name }: KeyRing): KmsError {
  return new KmsError(
    'refused',
    `no private key in that file opens an earlier key of the keyring ${name}: nothing was changed`,
    { hint: 'name the file that has the private keys from before with --private-key FILE' },
  );
}

/** Gives the ring the pair, and a key wrapped to it, if they are missing; returns the updated ring. */
async function adopt({ cli, client, appliance, ring }: Upgrade, { publicKey, file }: OwnPair): Promise<KeyRing> {
  const { name: ringname } = ring;
  const isChange = !isSamePublicKey(publicKey, ring.publicKey);
  if (isChange) {
    const config = { publicKey, replaces: ring.publicKey };
    await client.putConfig({ ringname, config }).catch((error) => {
      const isLate = error instanceof KmsError && error.fields?.['config.replaces'] !== undefined;
      throw isLate ? anotherWasFirst(ring, file) : error;
    });
    await sayLost(cli, client, ring, file);
  }
  const active = await client.getKey({ ringname, keyId: ring.activeKey });
  const isRotated = !isSamePublicKey(active.publicKey, publicKey);
  if (isRotated) {
    await client.rotateKeyring({ ringname }).catch((error) => {
      throw error instanceof KmsError ? halfway(ring, error) : error;
    });
  }
  const now = isChange || isRotated ? (await client.getKeyring({ ringname })).ring : ring;
  if (!isSamePublicKey(now.publicKey, publicKey)) {
    throw new KmsError(
      'refused',
      `the appliance has another public key for the keyring ${ringname} than it was given`,
      {
        hint: 'no earlier key was wrapped to it; somebody else may have changed it at the same time: look at `kms keyring show`',
      },
    );
  }
  await rememberOwn(cli, appliance, now, file?.keys ?? []);
  return now;
}

/** Nothing is lost: encrypts continue with the earlier key. */
function halfway({ name }: KeyRing, error: KmsError): KmsError {
  return new KmsError(error.code, `${name} has the new public key, but no key for it yet: ${error.message}`, {
    ...error,
    hint: `until then it encrypts with the earlier key; ${error.code === 'quota' ? 'ask the operator for more room, then' : 'then'} repeat the command: it goes on from there`,
    cause: error,
  });
}

function anotherWasFirst({ name }: KeyRing, file: RingKeyFile | undefined): KmsError {
  const kept = file ? `${file.path} is kept, with a hybrid key that nothing is wrapped to; ` : '';
  return new KmsError(
    'refused',
    `somebody else gave the keyring ${name} another pair at the same time: yours is not used`,
    { hint: `${kept}get the file with the present pair from that person` },
  );
}

/** Warns about keys made while the ring had somebody else's public key: the owner's private keys do not open them. */
async function sayLost(
  { io }: UpgradeCli,
  client: Client,
  ring: KeyRing,
  file: RingKeyFile | undefined,
): Promise<void> {
  if (!file || hasKeyOf(file, ring.publicKey)) return;
  const lost = (await madeFor(client, ring)).get(ring.publicKey) ?? 0;
  const what = 'only the holder of its private key can open what they encrypted';
  await say(io, visible(`${ring.name} had somebody else's public key, and ${lost} keys were made for it: ${what}`));
}

/** Number of keys made for each public key that the ring has had. */
async function madeFor(client: Client, ring: KeyRing): Promise<ReadonlyMap<string, number>> {
  const { items } = await import('../../client/pages.ts');
  const made = new Map<string, number>();
  for await (const key of items(client.listKeys, { ringname: ring.id, id: true, wrapped: true, limit: 100 })) {
    const { publicKey } = key.earlier?.[0] ?? key;
    made.set(publicKey, (made.get(publicKey) ?? 0) + 1);
  }
  return made;
}

/** Rewraps the keys that are not wrapped to the ring's public key, which is known to be the owner's. */
async function rewrap(cli: UpgradeCli, client: Client, ring: KeyRing, privateKeys: RingPrivateKeys): Promise<void> {
  const { rewrapRing } = await import('../../client/rewrapping.ts');
  const { stderr } = cli.io;
  const { total } = await countKeys(client, ring);
  const progress = async (keys: number) => {
    if (stderr.isTTY && total > 100) await tell(cli.io, `\r${keys} of ${total} keys`);
  };
  const {
    rewrapped,
    left,
    full = 0,
  } = await rewrapRing({ client, ring, privateKeys, progress }).finally(() =>
    stderr.isTTY && total > 100 ? tell(cli.io, '\n') : undefined,
  );
  const pairs: Pair[] = [...ringPairs(ring), ['rewrapped', rewrapped], ['left', left]];
  await printThing(cli, { ring, rewrapped, left }, pairs);
  if (left === 0) return;
  if (full === left) {
    throw new KmsError(
      'refused',
      `${left} keys of ${ring.name} have been rewrapped too often to be rewrapped again: they are as they were`,
      { hint: 'anybody who uses them needs the file with the private keys from before too' },
    );
  }
  const others = full > 0 ? `; ${full} others cannot be rewrapped any more` : '';
  throw new KmsError(
    'refused',
    `${left - full} keys of ${ring.name} are left as they are: no private key here opens them beyond doubt${others}`,
    {
      hint: 'name the file that has the private keys from before with --private-key FILE',
    },
  );
}

async function countKeys(client: Client, ring: KeyRing): Promise<{ readonly total: number; readonly left: number }> {
  const { items } = await import('../../client/pages.ts');
  let [total, left] = [0, 0];
  for await (const key of items(client.listKeys, { ringname: ring.id, id: true, limit: 1000 })) {
    total++;
    if (kemOfPublicKey(ring.publicKey) !== hybrid || key.publicKey !== ring.publicKey) left++;
  }
  return { total, left };
}
