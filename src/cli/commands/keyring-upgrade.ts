// Upgrading a keyring of X25519 to a hybrid pair, and wrapping its earlier keys anew to it.
import type { KeyRing } from '../../api/keyrings.ts';
import type { Client } from '../../client/client.ts';
import { isSamePublicKey, kemOfPublicKey, publicKeyOf } from '../../client/ring-keys.ts';
import { KmsError } from '../../errors.ts';
import type { Cli, CliOf } from '../command.ts';
import { type Connection, withClient } from '../connect.ts';
import type { keyringUpgrade } from '../grammar/keyring.ts';
import { say, write } from '../io.ts';
import { type Pair, printThing } from '../output.ts';
import {
  addHybridKey,
  checkedRingName,
  type RingPrivateKeys,
  readRingKey,
  rememberOwn,
  ringKeyFile,
} from '../ring-key-file.ts';
import { visible } from '../text.ts';
import { readPublicKey, ringPairs } from './keyring.ts';

/**
 * A new hybrid pair for a ring of X25519. Each step is found done where it was cut off after it: the private key is in
 * its file before the ring has the public one, and the ring has that before it gets a key.
 */
export async function upgrade(cli: CliOf<typeof keyringUpgrade.upgrade>): Promise<void> {
  const ringname = checkedRingName(cli.get('<NAME>'));
  const given = await readPublicKey(cli);
  if (given !== undefined && kemOfPublicKey(given) !== hybrid) {
    throw cli.wrong(`--public-key: expected a public key of ${hybrid}`);
  }
  if (given !== undefined && cli.get('--prepare')) {
    throw cli.wrong('--prepare and --public-key exclude each other: of a pair of yours there is nothing to add here');
  }
  if (cli.get('--rewrap') && cli.get('--prepare')) {
    throw cli.wrong('--prepare and --rewrap exclude each other: nothing is wrapped to the new pair before it is used');
  }
  if (cli.get('--dry-run') && !cli.get('--rewrap')) throw cli.wrong('--dry-run goes with --rewrap');
  await withClient(cli, async (client, appliance) => {
    const { ring } = await client.getKeyring({ ringname });
    if (cli.get('--dry-run')) {
      const { left } = await countKeys(client, ring);
      return printThing(cli, { ring, rewrapped: 0, left }, [...ringPairs(ring), ['left', left]]);
    }
    const { publicKey, isOurs, file } = await wanted(cli, client, appliance, ring, given);
    if (cli.get('--prepare')) return printThing(cli, { ring }, ringPairs(ring));
    if (publicKey !== ring.publicKey) await client.putConfig({ ringname, config: { publicKey } });
    const { ring: changed } = await client.getKeyring({ ringname });
    if (!isSamePublicKey(changed.publicKey, publicKey)) {
      throw new KmsError(
        'refused',
        `the appliance has another public key for the keyring ${ringname} than it was given`,
        {
          hint: 'no key was wrapped to it; somebody else may have changed it at the same time: look at `kms keyring show`',
        },
      );
    }
    if (isOurs) {
      await rememberOwn(cli, appliance, changed, given);
      const active = await client.getKey({ ringname, keyId: changed.activeKey });
      if (active.publicKey !== changed.publicKey) await client.rotateKeyring({ ringname });
    }
    if (publicKey !== ring.publicKey) await sayLost(cli, client, ring, file?.keys ?? []);
    const answer = await client.getKeyring({ ringname });
    if (!isSamePublicKey(answer.ring.publicKey, publicKey)) throw notOurs(cli, ring, file?.path);
    if (cli.get('--rewrap')) {
      const { keys: privateKeys } = file ?? (await ringKeyFile(cli, appliance, answer.ring));
      return rewrap(cli, client, answer.ring, privateKeys);
    }
    await printThing(cli, answer, ringPairs(answer.ring));
  });
}

interface Wanted {
  /** That the ring is to have. */
  readonly publicKey: string;
  /** False where nothing here tells whose it is: then it is left alone. */
  readonly isOurs: boolean;
  readonly file?: { readonly path: string; readonly keys: RingPrivateKeys };
}

/**
 * The owner's hybrid public key for the ring. What the appliance says is believed only where the private key is in the
 * owner's file of this ring, which opens a key of it from before: it would get the bytes of all keys. Another one is
 * replaced only where the owner names the pair. Throws `refused`.
 */
async function wanted(
  cli: CliOf<typeof keyringUpgrade.upgrade>,
  client: Client,
  appliance: Connection,
  ring: KeyRing,
  given: string | undefined,
): Promise<Wanted> {
  const read = ringKeyFile(cli, appliance, given === undefined ? ring : { name: ring.name, publicKey: given });
  const isNamed = cli.get('--private-key') !== undefined;
  const file = await read.catch((error) => {
    if (isNamed || (cli.get('--rewrap') && given !== undefined)) throw error;
    return undefined;
  });
  const { openEarlier } = await import('../../client/rewrapping.ts');
  const opens = async () => file && openEarlier({ client, ring, privateKeys: file.keys });
  const isOfRing = async () => !!file && (await opens()) !== false;
  if (given !== undefined) {
    const publicKey = isSamePublicKey(given, ring.publicKey) ? ring.publicKey : given;
    if (cli.get('--rewrap') && !(await isOfRing())) throw opensNone(ring);
    return { publicKey, isOurs: true, ...(file && { file }) };
  }
  const isPresent = file?.keys.some((key) => publicKeyOf(key) === ring.publicKey) ?? false;
  // Its own bytes tell what it is, not what the appliance calls it.
  const isHybrid = kemOfPublicKey(ring.publicKey) === hybrid;
  if (isPresent && !isHybrid) {
    if (!(await isOfRing())) throw opensNone(ring);
    return { publicKey: await addKey(cli, appliance, ring), isOurs: true, ...(file && { file: await again(file) }) };
  }
  if (isPresent && file) {
    if (await isOfRing()) return { publicKey: ring.publicKey, isOurs: true, file };
    const active = await client.getKey({ ringname: ring.name, keyId: ring.activeKey });
    if (cli.get('--rewrap') || active.publicKey !== ring.publicKey) throw opensNone(ring);
    return { publicKey: ring.publicKey, isOurs: false, file };
  }
  const last = file?.keys.at(-1);
  if (isNamed && file && last && !cli.get('--prepare') && (await opens())) {
    if (last.kem === hybrid) return { publicKey: publicKeyOf(last), isOurs: true, file };
    const publicKey = await addKey(cli, appliance, { name: ring.name, publicKey: publicKeyOf(last) });
    return { publicKey, isOurs: true, file: await again(file) };
  }
  // It says what is wrong with the file.
  if (!isHybrid) return { publicKey: await addKey(cli, appliance, ring), isOurs: true };
  const active = await client.getKey({ ringname: ring.name, keyId: ring.activeKey });
  if (!file && !cli.get('--rewrap') && active.publicKey === ring.publicKey) {
    return { publicKey: ring.publicKey, isOurs: false };
  }
  throw notOurs(cli, ring, file?.path);
}

async function again({ path }: { readonly path: string }) {
  return { path, keys: await readRingKey(path) };
}

function notOurs(cli: CliOf<typeof keyringUpgrade.upgrade>, { name }: KeyRing, path = 'FILE'): KmsError {
  const command = `kms keyring upgrade ${name} --private-key ${path}${cli.get('--rewrap') ? ' --rewrap' : ''}`;
  return new KmsError(
    'refused',
    `the public key of the keyring ${name} is not one of yours: no key was wrapped to it`,
    {
      hint: `if the keyring's owner did not change it, \`${visible(command)}\` puts the pair in that file back, or --public-key FILE one whose private key is kept elsewhere`,
    },
  );
}

function opensNone({ name }: KeyRing): KmsError {
  return new KmsError(
    'refused',
    `no private key in that file opens an earlier key of the keyring ${name}: nothing was changed`,
    { hint: 'name the file that has the private keys from before with --private-key FILE' },
  );
}

/** What was made while the ring had another's public key, which no private key of the owner opens. */
async function sayLost(cli: Cli, client: Client, ring: KeyRing, own: RingPrivateKeys): Promise<void> {
  if (own.length === 0 || own.some((key) => publicKeyOf(key) === ring.publicKey)) return;
  const { items } = await import('../../client/pages.ts');
  let lost = 0;
  for await (const key of items(client.listKeys, { ringname: ring.id, id: true, wrapped: true, limit: 100 })) {
    if ((key.earlier?.[0] ?? key).publicKey === ring.publicKey) lost++;
  }
  const what = 'only who has its private key opens what they encrypted';
  await say(cli.io, visible(`${ring.name} had another's public key, and ${lost} keys were made for it: ${what}`));
}

/** Wraps the keys anew that are not wrapped to the ring's public key, which is known to be the owner's. */
async function rewrap(
  cli: CliOf<typeof keyringUpgrade.upgrade>,
  client: Client,
  ring: KeyRing,
  privateKeys: RingPrivateKeys,
): Promise<void> {
  const { rewrapRing } = await import('../../client/rewrapping.ts');
  const { stderr } = cli.io;
  const { total } = await countKeys(client, ring);
  const progress = async (keys: number) => {
    if (stderr.isTTY && total > 100) await write(stderr, `\r${keys} of ${total} keys`);
  };
  const {
    rewrapped,
    left,
    full = 0,
  } = await rewrapRing({ client, ring, privateKeys, progress }).finally(() =>
    stderr.isTTY && total > 100 ? write(stderr, '\n') : undefined,
  );
  const pairs: Pair[] = [...ringPairs(ring), ['wrapped anew', rewrapped], ['left', left]];
  await printThing(cli, { ring, rewrapped, left }, pairs);
  if (left === 0) return;
  if (full === left) {
    throw new KmsError(
      'refused',
      `${left} keys of ${ring.name} were wrapped anew so often that they cannot be any more: they are as they were before`,
      { hint: 'whoever uses them needs the file with the private keys from before too' },
    );
  }
  const others = full > 0 ? `; ${full} others cannot be wrapped anew any more` : '';
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

const hybrid = 'mlkem768-x25519';

/** Answers the public key of what the file has now. */
async function addKey(
  cli: CliOf<typeof keyringUpgrade.upgrade>,
  appliance: Connection,
  ring: Pick<KeyRing, 'name' | 'publicKey'>,
): Promise<string> {
  const { path, publicKey } = await addHybridKey(cli, appliance, ring);
  const what = cli.get('--prepare')
    ? 'hand it to all who use the keyring, then run this without --prepare'
    : 'whoever uses the keyring needs it with both of them from now on';
  await say(cli.io, visible(`${path} has the earlier private key and a hybrid one: ${what}`));
  return publicKey;
}
