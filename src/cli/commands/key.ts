// Commands for the life of managed keys, whose keys the appliance holds: from creation to deletion.
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { ageText } from '../../model/ages.ts';
import type { KeyState } from '../../model/key-states.ts';
import { timestamp } from '../../model/timestamp.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm, confirmAtTerminal, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import { deletedIdOf, deletedKeys } from '../deleted-things.ts';
import type { key, newKey } from '../grammar/key.ts';
import { say, write } from '../io.ts';
import { dependentLines, useColumns, withNames } from '../key-dependents.ts';
import { nameTaken } from '../near-names.ts';
import { type Pair, printJson, printLine, printList, printTable, printThing, timeOn } from '../output.ts';
import { checkedRingName } from '../ring-key-file.ts';
import type { Column } from '../table.ts';
import { visible } from '../text.ts';

export async function create(cli: CliOf<typeof key.create>): Promise<void> {
  const name = checkedRingName(cli.get('<NAME>'), 'managed key');
  const aliases = cli.get('--alias');
  const input = given({
    name,
    type: cli.get('--type'),
    ...newKeyFields(cli),
    aliases: aliases.length > 0 ? [...aliases] : undefined,
    deletionAllowed: cli.get('--deletion-allowed'),
    tags: cli.get('--tag'),
    activateAt: cli.get('--activate-at'),
    deactivateAt: cli.get('--deactivate-at'),
  });
  await withClient(cli, async (client) => {
    const answer = await client.createManagedKey(input).catch((error) => {
      throw nameTaken(error, name);
    });
    await printThing(cli, answer, keyPairs(answer.key));
  });
}

/** Fields of a key that is made or imported; undefined ones are left to the appliance. */
export function newKeyFields(cli: CliOf<typeof newKey>) {
  const uses = cli.get('--use');
  return {
    uses: uses.length > 0 ? [...uses] : undefined,
    derived: cli.get('--derived') || undefined,
    exportable: cli.get('--exportable'),
    rotateAfter: inSeconds(cli.get('--rotate-after')),
  };
}

function inSeconds(age: number | null | undefined): number | null | undefined {
  return typeof age === 'number' ? age / 1000 : age;
}

export async function list(cli: CliOf<typeof key.list>): Promise<void> {
  const deleted = cli.get('--deleted');
  const style = deleted
    ? { columns: deletedColumns, empty: 'no deleted managed keys that can be restored', oldestFirst: true as const }
    : {
        columns: keyColumns,
        empty: 'no managed keys yet: make one with `kms key create NAME`',
        oldestFirst: true as const,
      };
  const tags = Object.entries(cli.get('--tag') ?? {});
  for (const option of ['--limit', '--cursor'] as const) {
    if (tags.length > 0 && cli.isTyped(option)) throw cli.wrong(`--tag and ${option} exclude each other`);
  }
  const hasTags = (key: ManagedKey): boolean => tags.every(([name, value]) => key.tags[name] === value);
  const input = deleted ? { deleted } : {};
  const empty = tags.length > 0 ? `no managed keys with ${tags.length === 1 ? 'this tag' : 'these tags'}` : style.empty;
  await withClient(cli, (client) => printList(cli, client.listManagedKeys, input, { ...style, empty, only: hasTags }));
}

export async function show(cli: CliOf<typeof key.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.getManagedKey({ key: cli.get('<NAME>') });
    await printThing(cli, answer, keyPairs(answer.key));
  });
}

export async function versions(cli: CliOf<typeof key.versions>): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.getManagedKey({ key: cli.get('<NAME>') });
    const { versions: found = [], primaryVersion } = answer.key;
    if (cli.json) return printJson(cli, answer);
    if (found.length === 0) return say(cli.io, 'no versions yet: import one with `kms key import`');
    await printTable(cli, found, [
      { title: 'version', value: ({ version }) => version },
      { title: 'state', value: ({ state }) => state, whole: true },
      { title: 'primary', value: ({ version }) => (version === primaryVersion ? 'yes' : 'no') },
      { title: 'origin', value: ({ origin }) => origin, whole: true },
      { title: 'created', value: ({ createdAt }) => createdAt, short: true },
    ]);
  });
}

export async function rotate(cli: CliOf<typeof key.rotate>): Promise<void> {
  const name = cli.get('<NAME>');
  const { stderr } = cli.io;
  // A program gets no list, and leaves no record of one.
  const lines = stderr.isTTY ? await detailsFrom(cli, (client) => dependentLines(client, name, width(cli))) : [];
  for (const line of lines) await write(stderr, `${visible(line)}\n`);
  await withClient(cli, async (client) => {
    const answer = await client.rotateManagedKey({ key: name });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${name} has the new version ${answer.key.latestVersion}`);
  });
}

function width(cli: Cli): { readonly columns: number } {
  // Two for the indent.
  return { columns: (cli.io.stderr.columns || 80) - 2 };
}

export async function config(cli: CliOf<typeof key.config>): Promise<void> {
  const name = cli.get('<NAME>');
  const changes = given({
    minDecryptVersion: cli.get('--min-decrypt-version'),
    minEncryptVersion: cli.get('--min-encrypt-version'),
    deletionAllowed: cli.get('--deletion-allowed'),
    exportable: cli.get('--exportable'),
    rotateAfter: inSeconds(cli.get('--rotate-after')),
    tags: cli.get('--tag'),
    activateAt: cli.get('--activate-at'),
    deactivateAt: cli.get('--deactivate-at'),
  });
  for (const { deed, details } of await questionsOf(cli, changes)) await confirm(cli, deed, { details });
  await withClient(cli, async (client) => {
    const answer =
      Object.keys(changes).length > 0
        ? await client.configureManagedKey({ key: name, ...changes })
        : await client.getManagedKey({ key: name });
    await printThing(cli, answer, keyPairs(answer.key));
  });
}

interface Changes {
  readonly minDecryptVersion?: number | undefined;
  readonly exportable?: boolean | undefined;
  readonly deactivateAt?: number | null | undefined;
}

interface Question {
  readonly deed: string;
  details(): Promise<readonly string[]>;
}

/** Questions before changes that stop software at once. */
async function questionsOf(cli: CliOf<typeof key.config>, changes: Changes): Promise<readonly Question[]> {
  const name = cli.get('<NAME>');
  const { minDecryptVersion: oldest, exportable, deactivateAt } = changes;
  const questions: Question[] = [];
  const lines = oldest === undefined ? [] : await detailsFrom(cli, (client) => refusedLines(client, cli, name, oldest));
  if (lines.length > 0) {
    const versions = oldest === 2 ? 'version 1' : `versions before ${oldest}`;
    const deed = `makes the managed key ${name} refuse ${versions}: data that they protect cannot be read`;
    questions.push({ deed: `${deed} until it is lowered again`, details: async () => lines });
  }
  if (typeof deactivateAt === 'number' && deactivateAt <= Date.now()) {
    const rest = 'it still decrypts and verifies, but never protects anything new';
    questions.push({
      deed: `deactivates the managed key ${name} for good, as that time is over: ${rest}`,
      details: () => detailsFrom(cli, (client) => dependentLines(client, name, width(cli))),
    });
  }
  const readers = exportable === false ? await detailsFrom(cli, (client) => readerLines(client, cli, name)) : [];
  if (readers.length > 0) {
    const deed = `makes the secret ${name} unreadable for good: nothing and nobody gets its value again`;
    questions.push({ deed, details: async () => readers });
  }
  return questions;
}

/** Lines on the readers of a secret that can be read; none for other keys, which work on all the same. */
async function readerLines(client: Client, cli: Cli, name: string): Promise<readonly string[]> {
  const { key } = await client.getManagedKey({ key: name });
  return key.type === 'secret' && key.exportable ? dependentLines(client, key.displayName, width(cli)) : [];
}

/** Lines on the users of versions that would be refused; none if all of those are refused already. */
async function refusedLines(client: Client, cli: Cli, name: string, oldest: number): Promise<readonly string[]> {
  const { key } = await client.getManagedKey({ key: name });
  if (oldest <= Math.max(key.minDecryptVersion, 1) || oldest > key.latestVersion) return [];
  return dependentLines(client, key.displayName, { before: oldest, ...width(cli) });
}

export async function enable(cli: CliOf<typeof key.enable>): Promise<void> {
  await setState(cli, 'active', 'is active');
}

export async function disable(cli: CliOf<typeof key.disable>): Promise<void> {
  const name = cli.get('<NAME>');
  const version = cli.get('--version');
  const details = stateDetails(cli, ['active', 'suspended'], 'only what is active can be disabled');
  const until = `until \`kms key enable ${name}${version === undefined ? '' : ` --version ${version}`}\``;
  await confirm(cli, `disables ${subject(cli)}: nothing works with it ${until}`, { details });
  await setState(cli, 'suspended', 'is disabled');
}

export async function deactivate(cli: CliOf<typeof key.deactivate>): Promise<void> {
  const details = stateDetails(
    cli,
    ['active', 'suspended', 'deactivated'],
    'only what is active or suspended can be deactivated',
  );
  await confirm(
    cli,
    `deactivates ${subject(cli)} for good: it still decrypts and verifies, but never protects anything new`,
    { details },
  );
  await setState(cli, 'deactivated', 'is deactivated');
}

/** For good, and so it takes the name at a terminal; scripts that react to a leak go on without one. */
export async function compromised(cli: CliOf<typeof key.compromised>): Promise<void> {
  const details = stateDetails(
    cli,
    ['active', 'suspended', 'deactivated', 'compromised'],
    'only what was active before can be marked as compromised',
  );
  await confirmAtTerminal(
    cli,
    `marks ${subject(cli)} as compromised for good: it still decrypts and verifies, but never protects anything new`,
    { name: cli.get('<NAME>'), details },
  );
  await setState(cli, 'compromised', 'is marked as compromised');
}

/** Lines on the users of what changes its state. Without such a key or version, or from another state, it ends. */
function stateDetails(cli: OneCli, from: readonly KeyState[], rule: string): () => Promise<readonly string[]> {
  const name = cli.get('<NAME>');
  const version = cli.get('--version');
  return () =>
    detailsFrom(cli, async (client) => {
      const { key } = await client.getManagedKey({ key: name });
      const now = version === undefined ? key.state : key.versions?.find((each) => each.version === version)?.state;
      if (now === undefined) throw new KmsError('not-found', `${name} has no version ${version}`);
      if (!from.includes(now)) throw new KmsError('conflict', `${subject(cli)} is ${now}: ${rule}`);
      return [...alsoCalled(name, key), ...(await dependentLines(client, name, { version, ...width(cli) }))];
    });
}

type OneCli = CliOf<typeof key.enable>;

function subject(cli: OneCli): string {
  const version = cli.get('--version');
  return `${version === undefined ? '' : `version ${version} of `}the managed key ${cli.get('<NAME>')}`;
}

type Asked = 'active' | 'suspended' | 'deactivated' | 'compromised';

/** The consent to stop what was used lately has been given, by a word at the terminal or by --yes. */
async function setState(cli: OneCli, state: Asked, done: string): Promise<void> {
  const used = state === 'suspended' || undefined;
  const input = given({ key: cli.get('<NAME>'), state, version: cli.get('--version'), used });
  await withClient(cli, async (client) => {
    const answer = await client.setManagedKeyState(input);
    if (cli.json) return printJson(cli, answer);
    await printLine(cli, `${subject(cli)} ${done}`);
  });
}

export async function dependents(cli: CliOf<typeof key.dependents>): Promise<void> {
  const name = cli.get('<NAME>');
  const since = cli.get('--since');
  await withClient(cli, async (client) => {
    const input = given({ key: name, since: since === undefined ? undefined : String(since) });
    const answer = await client.listManagedKeyDependents(input);
    if (cli.json) return printJson(cli, answer);
    const { dependents: found } = answer;
    if (found.length === 0) {
      const from = since === undefined ? '' : ` since ${timeOn(cli, 'stderr', since)}`;
      return say(cli.io, visible(`no caller has ${from === '' ? 'ever ' : ''}used ${name}${from}`));
    }
    await printTable(cli, await withNames(client, found), useColumns);
  });
}

export async function remove(cli: CliOf<typeof key.remove>): Promise<void> {
  const name = cli.get('<NAME>');
  const days = cli.get('--days');
  const details = () => detailsFrom(cli, (client) => beforeDeletion(client, cli, name));
  await confirm(
    cli,
    `deletes the managed key ${name}: nothing works with it until it is restored, and after ${days} days never again`,
    { name, details },
  );
  await withClient(cli, async (client) => {
    const answer = await client.deleteManagedKey({ key: name, days, used: true });
    if (cli.json) return printJson(cli, answer);
    await printLine(cli, `${answer.name} is deleted; for ${days} days \`kms key restore ${answer.id}\` restores it`);
  });
}

async function beforeDeletion(client: Client, cli: Cli, name: string): Promise<readonly string[]> {
  const { key } = await client.getManagedKey({ key: name });
  if (!key.deletionAllowed) {
    throw new KmsError('conflict', `${key.displayName} is protected from deletion`, {
      hint: `lift that with \`kms key config ${key.displayName} --deletion-allowed true\``,
    });
  }
  return [...alsoCalled(name, key), ...(await dependentLines(client, name, width(cli)))];
}

/** The key's name, if it was named otherwise. */
function alsoCalled(name: string, key: ManagedKey): readonly string[] {
  return name.toLowerCase() === key.name ? [] : [`${name} is the managed key ${key.displayName}.`];
}

export async function restore(cli: CliOf<typeof key.restore>): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.restoreManagedKey({
      id: await deletedIdOf('managed-key', cli.get('<ID>'), deletedKeys(client)),
    });
    await printThing(cli, answer, keyPairs(answer.key));
  });
}

export function keyPairs(key: ManagedKey): readonly Pair[] {
  const { aliases, tags, versions: [newest] = [] } = key;
  const tagged = Object.entries(tags).map(([name, value]) => `${name}=${value}`);
  return [
    ['name', key.displayName],
    ['aliases', aliases.length > 0 ? aliases.join(' ') : undefined],
    ['id', key.id],
    ['custody', 'server: the appliance holds its keys'],
    ['type', key.derived ? `${key.type}, derived` : key.type],
    ['uses', key.uses.join(' ')],
    ['state', key.state],
    ['origin', key.origin],
    ['latest version', key.latestVersion === 0 ? 'none yet' : key.latestVersion],
    ['primary version', key.primaryVersion ?? 'none'],
    ...versionPairs(key),
    [
      'rotates',
      key.rotateAfter === null ? 'never by itself' : `once a version is ${ageText(key.rotateAfter * 1000)} old`,
    ],
    ['may be exported', key.exportable ? 'yes' : 'no'],
    ['may be deleted', key.deletionAllowed ? 'yes' : 'no'],
    ['opens messages of', key.allowPlaintextFormat === 'vault' ? 'Vault and OpenBao, too' : undefined],
    ['tags', tagged.length > 0 ? tagged.join(' ') : undefined],
    ['AWS account', key.aws?.account],
    ['AWS key id', key.aws?.keyId],
    ['KMIP object', key.kmip?.type.replace('-', ' ')],
    ['KMIP names', key.kmip && key.kmip.names.length > 0 ? key.kmip.names.join(', ') : undefined],
    ['KMIP client', key.kmip?.owner],
    ['last got over KMIP', key.kmip?.lastGet && `${key.kmip.lastGet.at} by ${key.kmip.lastGet.caller}`],
    ['public key', newest?.publicKey && shortPem(newest.publicKey)],
    ['active from', key.activateAt === null ? undefined : timestamp(key.activateAt)],
    ['active until', key.deactivateAt === null ? undefined : timestamp(key.deactivateAt)],
    ['created', key.createdAt],
    ['updated', key.updatedAt],
    ['deleted', key.deletedAt],
    ['restorable until', key.restorableUntil],
  ];
}

/** Oldest versions that work, in the words of what the key does. */
function versionPairs({ uses, minDecryptVersion, minEncryptVersion }: ManagedKey): readonly Pair[] {
  const does = (...any: readonly string[]): boolean => uses.some((use) => any.includes(use));
  const oldest = `version ${minDecryptVersion}`;
  const from = minEncryptVersion === 0 ? 'any version' : `version ${minEncryptVersion} and later`;
  if (does('encrypt', 'decrypt')) {
    return [
      ['decrypts from', oldest],
      ['encrypts with', from],
    ];
  }
  if (!does('sign', 'verify', 'mac')) return [['works from', oldest]];
  return [
    ['verifies from', oldest],
    [does('mac') ? 'makes MACs with' : 'signs with', from],
  ];
}

/** Base64 of the key; shortened, since one of RSA or ML-DSA would fill the screen. */
function shortPem(pem: string): string {
  const base64 = pem.replace(/-----[^-]+-----|\s/g, '');
  return base64.length <= 130 ? base64 : `${base64.slice(0, 60)}... (whole with --json)`;
}

const keyColumns: readonly Column<ManagedKey>[] = [
  { title: 'name', value: (key) => key.displayName, name: true },
  { title: 'type', value: (key) => key.type, whole: true },
  { title: 'version', value: (key) => key.latestVersion },
  { title: 'state', value: (key) => key.state, whole: true, isRed: (key) => key.state === 'compromised' },
  { title: 'aliases', value: (key) => key.aliases.join(' '), name: true, spare: true },
  { title: 'created', value: (key) => key.createdAt, short: true, spare: true },
  { title: 'id', value: (key) => key.id, short: true, spare: true },
];

const deletedColumns: readonly Column<ManagedKey>[] = [
  { title: 'name', value: (key) => key.displayName, name: true },
  { title: 'id', value: (key) => key.id, whole: true },
  { title: 'restorable until', value: (key) => key.restorableUntil ?? '', short: true, spare: true },
  { title: 'deleted', value: (key) => key.deletedAt ?? '', short: true, spare: true },
];
