// Keyrings for age: prints recipients and identities, and runs the plugin that age starts, which contacts the
// appliances they name. See docs/age.md.
import { readlink, realpath, stat, symlink } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import {
  type AgeIdentity,
  type AgePlace,
  type AgeRecipient,
  type DataKey,
  fingerprintOf,
  formatIdentity,
  formatRecipient,
  isKeyOf,
  parseRecipient,
} from '../../client/age-keys.ts';
import { speakAge } from '../../client/age-plugin.ts';
import { askForKey } from '../../client/known-keys.ts';
import { publicKeyOf, type RingPrivateKey } from '../../client/ring-keys.ts';
import { KmsError, systemCode } from '../../errors.ts';
import type { Cli, CliOf } from '../command.ts';
import { asTyped, type Connection, inTime, openConnection, withClient } from '../connect.ts';
import { sentenceOf } from '../exit.ts';
import { fileError } from '../files.ts';
import type { age, agePlugin, plugged } from '../grammar/other-software.ts';
import { pathFrom, say, write } from '../io.ts';
import { isServing } from '../local-socket.ts';
import { printJson, printLine } from '../output.ts';
import { readProfile } from '../profiles.ts';
import { isOfFile, keptRingKey, namedRingKey, type RingPrivateKeys, readRingKey } from '../ring-key-file.ts';
import { addressOf, namedDirectory, optionsFor, placeOf } from '../target.ts';
import { visible } from '../text.ts';

export async function recipient(cli: CliOf<typeof age.recipient>): Promise<void> {
  const made = await recipientOf(cli, cli.get('<RING>'));
  const text = formatRecipient(await forOthers(cli, made));
  if (cli.json) await printJson(cli, { ring: made.ring, ringId: made.ringId, recipient: text });
  else await printLine(cli, text);
}

export async function identity(cli: CliOf<typeof age.identity>): Promise<void> {
  const given = cli.get('<RING>');
  const isRecipient = /^age1kms1/i.test(given);
  const made = isRecipient ? parseRecipient(given) : await recipientOf(cli, given);
  const text = formatIdentity(await withKey(cli, made, isRecipient));
  // Bech32 may be upper case, but age takes no upper-case recipient.
  const recipient = isRecipient ? given.toLowerCase() : formatRecipient(await forOthers(cli, made));
  const { ring, ringId } = made;
  if (cli.json) return printJson(cli, { ring, ringId, recipient, identity: text });
  await write(cli.io.stdout, `# keyring: ${ring}\n# recipient: ${recipient}\n${text}\n`);
}

async function recipientOf(cli: Cli, ringname: string): Promise<AgeRecipient> {
  const place = await placeOf(cli);
  const { ring } = await withClient(cli, (client) => client.getKeyring({ ringname }));
  return { ring: ring.name, ringId: ring.id, kem: ring.kem, fingerprint: fingerprintOf(ring.publicKey), place };
}

/** Profiles are private to one user: other people get the address. */
async function forOthers(cli: Cli, recipient: AgeRecipient): Promise<AgeRecipient> {
  const { kind, name } = recipient.place;
  if (kind !== 'profile') return recipient;
  return { ...recipient, place: { kind: 'server', name: addressOf((await readProfile(cli.io, name)).server) } };
}

/** The identity with its private key or the key's file, which is checked first. */
async function withKey(
  cli: CliOf<typeof age.identity>,
  recipient: AgeRecipient,
  isRecipient: boolean,
): Promise<AgeIdentity> {
  const file = cli.get('--private-key');
  const inside = cli.get('--with-private-key');
  if (file === undefined && !inside) return recipient;
  if (file === undefined && isRecipient) {
    throw cli.wrong('--with-private-key needs --private-key FILE if a recipient is given');
  }
  const key = await (file === undefined
    ? withClient(cli, (_client, connection) => keptRingKey(cli, connection, recipient.ring))
    : readRingKey(file));
  const { bytes } = fitting(recipient, key);
  if (!inside) return { ...recipient, ...(file !== undefined && { privateKey: file }) };
  await say(cli.io, 'the identity holds the private key: keep it where only those who may decrypt can read it');
  return { ...recipient, privateKey: bytes };
}

/** The private key of this recipient. */
function fitting(recipient: AgeRecipient, privateKeys: RingPrivateKeys): RingPrivateKey {
  const fitting = privateKeys.find((key) => fits(recipient, key));
  if (fitting) return fitting;
  throw new KmsError('invalid', `the private key is not that of the keyring ${recipient.ring} that is meant`, {
    hint: `if the keyring was made again, make a new recipient: kms age recipient ${recipient.ring}`,
  });
}

/** A key of 32 bytes may be of either KEM: the recipient's is assumed. */
function fits(recipient: AgeRecipient, { kem = recipient.kem, bytes }: RingPrivateKey): boolean {
  return kem === recipient.kem && isKeyOf(recipient, publicKeyOf({ kem, bytes }));
}

export async function install(cli: CliOf<typeof agePlugin.install>): Promise<void> {
  const { isSingleExecutable } = await import('../../platform/program-files.ts');
  if (!isSingleExecutable()) {
    throw new KmsError('refused', 'this is not an executable of kms, but its sources', {
      hint: 'run `kms age-plugin install` with the executable',
    });
  }
  const executable = pathFrom(cli.io, process.execPath);
  const directory = cli.get('--dir') ?? dirname(executable);
  const path = join(directory, 'age-plugin-kms');
  try {
    await symlink(executable, path);
  } catch (error) {
    const there = systemCode(error) === 'EEXIST';
    if (!there) throw fileError('write', path, error, 'name a directory of yours with --dir DIR');
    if ((await readlink(path).catch(() => undefined)) !== executable) {
      throw new KmsError('refused', `${path} exists already and is not overwritten`, { hint: 'move it away first' });
    }
  }
  if (cli.json) await printJson(cli, { path, executable });
  else await printLine(cli, `${path} is ${executable}`);
  if (!(cli.io.env.PATH ?? '').split(delimiter).includes(directory)) {
    await say(cli.io, visible(`warning: age will not find it: ${directory} is not in PATH`));
  }
}

/** The plugin itself: age runs `age-plugin-kms --age-plugin=NAME`. */
export async function speak(cli: CliOf<typeof plugged.speak>): Promise<void> {
  const name = cli.get('--age-plugin');
  if (name === undefined) {
    throw new KmsError('usage', 'age-plugin-kms: this is a plugin, which age starts itself', {
      hint: 'make a recipient and an identity for it: see `kms age --help`',
    });
  }
  const connections = new Map<string, Connection>();
  // Read before `withOptions` replaces the options.
  const given = {
    server: cli.globals.get('--server'),
    profile: cli.globals.get('--profile'),
    data: namedDirectory(cli),
  };
  /** One connection per place, however many recipients, identities and files there are. */
  async function connectionTo({ place }: AgeRecipient): Promise<Connection> {
    const name = `${place.kind} ${place.name}`;
    const known = connections.get(name);
    if (known !== undefined) return known;
    const server = place.kind === 'data' ? await serverAlone(place.name, given.data) : undefined;
    const meant = server === undefined ? place : { ...place, name: server };
    const connection = await openConnection(
      cli.withOptions(cli.io, await optionsTo(cli, meant, given)),
      server !== undefined,
    );
    connections.set(name, connection);
    return connection;
  }
  try {
    await speakAge(name, {
      source: cli.io.stdin,
      write: (bytes) => write(cli.io.stdout, bytes),
      explain: (error) => sentenceOf(asTyped(error)),
      encryptKey: async (recipient) => encryptKey(cli, recipient, await connectionTo(recipient)),
      decryptKey: async (identity, header) => decryptKey(cli, identity, header, await connectionTo(identity)),
    });
  } finally {
    for (const connection of connections.values()) await connection.close();
  }
}

/**
 * The data directory that a recipient names, without links, if this user did not name it too: then only its server may
 * be asked. Undefined if it may be opened here. Throws `refused` if no server of this user runs there: the author of
 * the recipient may have made the directory too.
 */
async function serverAlone(directory: string, named: string | undefined): Promise<string | undefined> {
  const real = (path: string): Promise<string> => realpath(path).catch(() => path);
  // A link could lead elsewhere once this was looked at.
  const place = await real(directory);
  if (named !== undefined && (await real(named)) === place) return undefined;
  const { userId } = await import('../../platform/environment.ts');
  const owner = await stat(place).catch(() => undefined);
  // The socket is then this user's or root's too.
  const isOurs = owner !== undefined && (owner.uid === 0 || owner.uid === userId());
  if (isOurs && (await isServing(place).catch(() => false))) return place;
  throw new KmsError(
    'refused',
    `no server runs on ${directory}, and a directory that a recipient or an identity names is not opened`,
    {
      hint: `start it with \`kms serve\`; or, if you know who made it, set KMS_DATA=${directory}`,
    },
  );
}

/** Options as if the place alone had been typed. */
async function optionsTo(
  { io }: Cli,
  { kind, name }: AgePlace,
  given: Parameters<typeof optionsFor>[2],
): Promise<ReadonlyMap<string, string | undefined>> {
  const options = kind === 'server' ? await optionsFor(io, addressOf(name), given) : new Map([[`--${kind}`, name]]);
  return new Map([['--server', undefined], ['--profile', undefined], ['--data', undefined], ...options]);
}

type PluginCli = CliOf<typeof plugged.speak>;

async function encryptKey(cli: PluginCli, recipient: AgeIdentity, connection: Connection): Promise<DataKey> {
  const { ring: ringname } = recipient;
  const { client } = connection;
  const { answer, bytes } = await askForKey(
    client,
    { ringname },
    (known) => inTime(connection, (signal) => client.encrypt({ ringname, ...known }, { signal })),
    async ({ ringId }) => {
      if (ringId !== recipient.ringId) {
        throw new KmsError('invalid', `the keyring ${ringname} is not the one that is meant: it has another id`, {
          hint: `if it was made again, make a new recipient: kms age recipient ${ringname}`,
        });
      }
      const privateKeys = await privateKeyOf(cli, recipient, connection);
      const meant = fitting(recipient, privateKeys);
      // A recipient that promises resistance to quantum computers uses its own KEM only; an upgraded X25519 ring may
      // use either key.
      return recipient.kem === 'x25519' ? privateKeys : [{ ...meant, kem: recipient.kem }];
    },
  );
  return { key: bytes, header: answer.header };
}

async function decryptKey(
  cli: PluginCli,
  identity: AgeIdentity,
  header: string,
  connection: Connection,
): Promise<Uint8Array> {
  const { client } = connection;
  const { bytes } = await askForKey(
    client,
    {},
    (known) => inTime(connection, (signal) => client.decrypt({ header, ...known }, { signal })),
    () => privateKeyOf(cli, identity, connection),
  );
  return bytes;
}

/** The key in the identity, else the one of KMS_PRIVATE_KEY if it fits, else the one kept here. */
async function privateKeyOf(cli: PluginCli, of: AgeIdentity, connection: Connection): Promise<RingPrivateKeys> {
  const { kem, privateKey } = of;
  if (privateKey !== undefined) {
    return typeof privateKey === 'string' ? readRingKey(privateKey) : [{ kem, bytes: privateKey }];
  }
  const named = await namedRingKey(cli);
  if (named?.some((key) => fits(of, key))) return named;
  try {
    return await keptRingKey(cli, connection, of.ring);
  } catch (error) {
    // A key that does not fit is reported on use.
    if (named !== undefined) return named;
    if (!isOfFile(error)) throw error;
    throw new KmsError(error.code, error.message, {
      hint: `set KMS_PRIVATE_KEY to the file that has the private key of ${of.ring}, or make an identity that names it`,
    });
  }
}
