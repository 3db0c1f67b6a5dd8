// Commands for rings whose keys the appliance holds. Messages are small and sent to the appliance as a whole.
import type { ManagedKey } from '../../api/managed-keys.ts';
import { KmsError } from '../../errors.ts';
import { ageText } from '../../model/ages.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import type { key } from '../grammar/key.ts';
import { mustReachStdout, write } from '../io.ts';
import { nameTaken } from '../near-names.ts';
import { type Pair, printJson, printLine, printList, printThing } from '../output.ts';
import { checkedRingName } from '../ring-key-file.ts';
import { openInput } from '../streams.ts';
import type { Column } from '../table.ts';

export async function create(cli: CliOf<typeof key.create>): Promise<void> {
  const name = checkedRingName(cli.get('<NAME>'));
  const input = given({ name, type: cli.get('--type'), derived: cli.get('--derived') || undefined });
  await withClient(cli, async (client) => {
    const answer = await client.createManagedKey(input).catch((error) => {
      throw nameTaken(error, name);
    });
    await printThing(cli, answer, ringPairs(answer.ring));
  });
}

export async function list(cli: CliOf<typeof key.list>): Promise<void> {
  const deleted = cli.get('--deleted');
  const style = deleted
    ? { columns: deletedColumns, empty: 'no deleted managed keys that can be restored', oldestFirst: true as const }
    : {
        columns: ringColumns,
        empty: 'no managed keys yet: make one with `kms key create NAME`',
        oldestFirst: true as const,
      };
  await withClient(cli, (client) => printList(cli, client.listManagedKeys, deleted ? { deleted } : {}, style));
}

export async function show(cli: CliOf<typeof key.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.getManagedKey({ ringname: cli.get('<NAME>') });
    await printThing(cli, answer, ringPairs(answer.ring));
  });
}

export async function rotate(cli: CliOf<typeof key.rotate>): Promise<void> {
  const ringname = cli.get('<NAME>');
  await withClient(cli, async (client) => {
    const answer = await client.rotateManagedKey({ ringname });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${ringname} has the new version ${answer.ring.latestVersion}`);
  });
}

export async function config(cli: CliOf<typeof key.config>): Promise<void> {
  const ringname = cli.get('<NAME>');
  const rotateAfter = cli.get('--rotate-after');
  const changes = given({
    minDecryptionVersion: cli.get('--min-decryption-version'),
    minEncryptionVersion: cli.get('--min-encryption-version'),
    deletionAllowed: cli.get('--deletion-allowed'),
    rotateAfter: typeof rotateAfter === 'number' ? rotateAfter / 1000 : rotateAfter,
  });
  await withClient(cli, async (client) => {
    const answer =
      Object.keys(changes).length > 0
        ? await client.configureManagedKey({ ringname, ...changes })
        : await client.getManagedKey({ ringname });
    await printThing(cli, answer, ringPairs(answer.ring));
  });
}

export async function remove(cli: CliOf<typeof key.remove>): Promise<void> {
  const ringname = cli.get('<NAME>');
  const details = () =>
    detailsFrom(cli, async (client) => {
      const { ring } = await client.getManagedKey({ ringname });
      if (ring.deletionAllowed) return [];
      throw new KmsError('conflict', `${ring.displayName} cannot be deleted: its deletion is not allowed`, {
        hint: `allow it with \`kms key config ${ring.displayName} --deletion-allowed true\``,
      });
    });
  await confirm(
    cli,
    `deletes the managed key ${ringname}: what it encrypted cannot be decrypted until it is restored, and after 30 days never`,
    { name: ringname, details },
  );
  await withClient(cli, async (client) => {
    const answer = await client.deleteManagedKey({ ringname });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${answer.name} is deleted; for 30 days \`kms key restore ${answer.id}\` restores it`);
  });
}

export async function restore(cli: CliOf<typeof key.restore>): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.restoreManagedKey({ id: cli.get('<ID>') });
    await printThing(cli, answer, ringPairs(answer.ring));
  });
}

export async function encrypt(cli: CliOf<typeof key.encrypt>): Promise<void> {
  const plaintext = (await message(cli)).toBase64();
  await withClient(cli, async (client) => {
    const answer = await client.encryptWithKey({ ringname: cli.get('<NAME>'), items: [{ plaintext, ...bound(cli) }] });
    const { ciphertext } = only(answer);
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, ciphertext ?? '');
  });
}

export async function decrypt(cli: CliOf<typeof key.decrypt>): Promise<void> {
  mustReachStdout(cli.io);
  const ciphertext = Buffer.from(await message(cli))
    .toString('utf8')
    .trim();
  await withClient(cli, async (client) => {
    const answer = await client.decryptWithKey({ ringname: cli.get('<NAME>'), items: [{ ciphertext, ...bound(cli) }] });
    const { plaintext = '' } = only(answer);
    if (cli.json) await printJson(cli, answer);
    else await write(cli.io.stdout, Uint8Array.fromBase64(plaintext));
  });
}

type OfMessage = Cli<{
  '[FILE]': string | undefined;
  '--associated-data': string | undefined;
  '--context': string | undefined;
}>;

function bound(cli: OfMessage): { associatedData?: string; context?: string } {
  const base64 = (text: string | undefined) =>
    text === undefined ? undefined : new TextEncoder().encode(text).toBase64();
  return given({ associatedData: base64(cli.get('--associated-data')), context: base64(cli.get('--context')) });
}

/** Maximum bytes: base64 of it still fits into a request. */
const longestMessage = 512 * 1024;

async function message(cli: OfMessage): Promise<Uint8Array> {
  const { source, close } = await openInput(cli, cli.get('[FILE]'));
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of source) {
      pieces.push(piece);
      length += piece.length;
      if (length > longestMessage) {
        throw new KmsError('invalid', `the message is over the limit of ${longestMessage} bytes`, {
          hint: 'for files there are `kms encrypt` and `kms decrypt`',
        });
      }
    }
  } finally {
    await close();
  }
  return Buffer.concat(pieces);
}

interface Made {
  readonly ciphertext?: string;
  readonly plaintext?: string;
  readonly error?: string;
}

function only({ items: [made] }: { readonly items: readonly Made[] }): Made {
  if (made?.error !== undefined) throw new KmsError('invalid', made.error);
  return made ?? {};
}

function ringPairs(ring: ManagedKey): readonly Pair[] {
  const { versions = [] } = ring;
  const [newest] = versions;
  return [
    ['name', ring.displayName],
    ['id', ring.id],
    ['custody', 'server: the appliance holds its keys'],
    ['type', ring.derived ? `${ring.type}, derived` : ring.type],
    ['latest version', ring.latestVersion],
    ['decrypts from', `version ${ring.minDecryptionVersion}`],
    ['encrypts with', ring.minEncryptionVersion === 0 ? 'any' : `version ${ring.minEncryptionVersion} and later`],
    ['age of a version', ring.rotateAfter === null ? 'any' : ageText(ring.rotateAfter * 1000)],
    ['may be deleted', ring.deletionAllowed ? 'yes' : 'no'],
    ['public key', newest?.publicKey],
    ['created', ring.createdAt],
    ['updated', ring.updatedAt],
  ];
}

const ringColumns: readonly Column<ManagedKey>[] = [
  { title: 'name', value: (ring) => ring.displayName, name: true },
  { title: 'type', value: (ring) => ring.type, whole: true },
  { title: 'version', value: (ring) => ring.latestVersion },
  { title: 'custody', value: (ring) => ring.custody, spare: true },
  { title: 'created', value: (ring) => ring.createdAt, short: true, spare: true },
  { title: 'id', value: (ring) => ring.id, short: true, spare: true },
];

const deletedColumns: readonly Column<ManagedKey>[] = [
  { title: 'name', value: (ring) => ring.displayName, name: true },
  { title: 'id', value: (ring) => ring.id, whole: true },
  { title: 'restorable until', value: (ring) => ring.restorableUntil ?? '', short: true, spare: true },
  { title: 'deleted', value: (ring) => ring.deletedAt ?? '', short: true, spare: true },
];
