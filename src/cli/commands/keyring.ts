// Keyring commands. The private key of a new keyring is returned once and saved to a file of its own.

import type { KeyListItem, KeyRing, KeyRingConfig, ListedKeyRing } from '../../api/keyrings.ts';
import type { Client } from '../../client/client.ts';
import { items } from '../../client/pages.ts';
import { fingerprintOf, publicKeySpki } from '../../client/ring-keys.ts';
import { KmsError } from '../../errors.ts';
import { ageText } from '../../model/ages.ts';
import { recentDays, recentUses } from '../../model/key-usage.ts';
import { Callers } from '../caller-names.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import { deletedIdOf, deletedKeyrings } from '../deleted-things.ts';
import { readPem } from '../files.ts';
import type { keyring } from '../grammar/keyring.ts';
import { nameTaken } from '../near-names.ts';
import { type Pair, printJson, printLine, printList, printThing } from '../output.ts';
import { checkedRingName, keepAndShow, reserveKeyPlace } from '../ring-key-file.ts';
import type { Column } from '../table.ts';
import { stateOf } from './apikey.ts';

export async function create(cli: CliOf<typeof keyring.create>): Promise<void> {
  const name = checkedRingName(cli.get('<NAME>'));
  if (cli.get('--public-key') !== undefined && cli.isTyped('--private-key-out')) {
    throw new KmsError(
      'usage',
      '--public-key and --private-key-out exclude each other: with a public key of yours no private key is made',
    );
  }
  const publicKey = await readPublicKey(cli);
  // A given public key decides the KEM.
  const kem = cli.get('--kem') ?? (publicKey === undefined ? 'mlkem768-x25519' : undefined);
  const input = given({
    name,
    kem,
    publicKey,
    props: cli.get('--props'),
    keyProps: cli.get('--key-props'),
  });
  await withClient(cli, async (client, appliance) => {
    const place = publicKey === undefined ? await reserveKeyPlace(cli, appliance, 'rings', name) : undefined;
    const answer = await client.createKeyring(input).catch(async (error) => {
      await place?.release();
      throw nameTaken(error, name);
    });
    const print = () => printThing(cli, answer, ringPairs(answer.ring));
    const { privateKey } = answer;
    if (place && privateKey !== undefined) return keepAndShow(cli, place, { name, privateKey }, print);
    await place?.release();
    await print();
  });
}

export async function readPublicKey(cli: Cli<{ '--public-key': string | undefined }>): Promise<string | undefined> {
  const path = cli.get('--public-key');
  if (path === undefined) return undefined;
  // Only the public key is sent, even if the file holds a private key too.
  const spki = publicKeySpki(await readPem(path, 'the public key'));
  if (spki) return spki.toBase64();
  throw new KmsError('invalid', `${path} holds no X25519 or MLKEM768-X25519 public key that can be used`, {
    hint: 'expected PEM, base64 of SPKI DER, or base64 of the raw bytes',
  });
}

export async function list(cli: CliOf<typeof keyring.list>): Promise<void> {
  const deleted = cli.get('--deleted');
  const style = deleted
    ? { columns: deletedColumns, empty: 'no deleted keyrings that can be restored', oldestFirst: true as const }
    : {
        columns: ringColumns,
        empty: 'no keyrings yet: make one with `kms keyring create NAME`',
        oldestFirst: true as const,
      };
  await withClient(cli, (client) => printList(cli, client.listKeyrings, deleted ? { deleted } : {}, style));
}

export async function show(cli: CliOf<typeof keyring.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.getKeyring(given({ ringname: cli.get('<NAME>'), id: cli.get('--id') || undefined }));
    await printThing(cli, answer, ringPairs(answer.ring));
  });
}

export async function keys(cli: CliOf<typeof keyring.keys>): Promise<void> {
  const ring = given({ ringname: cli.get('<NAME>'), id: cli.get('--id') || undefined });
  await withClient(cli, async (client) => {
    if (!cli.get('--usage')) {
      return printList(cli, client.listKeys, ring, { columns: keyColumns, empty: 'no keys', oldestFirst: true });
    }
    const active = cli.json ? '' : (await client.getKeyring(ring)).ring.activeKey;
    const callers = new Callers(cli, client);
    const style = {
      columns: usageColumns(active, callers, Date.now()),
      before: (keys: readonly KeyListItem[]) =>
        callers.meet(keys.flatMap(({ usage }) => [usage?.lastDecryptBy, usage?.lastEncryptBy])),
      empty: 'no keys',
      oldestFirst: true,
      isActive: (key: KeyListItem) => key.id === active,
    } as const;
    return printList(cli, client.listKeys, { ...ring, usage: true }, style);
  });
}

const keyColumns: readonly Column<KeyListItem>[] = [
  { title: 'created', value: (key) => key.createdAt, short: true },
  { title: 'type', value: (key) => key.type },
  { title: 'kem', value: (key) => key.kem },
  { title: 'id', value: (key) => key.id, short: true },
  { title: 'props', value: (key) => JSON.stringify(key.props) },
];

function usageColumns(active: string, callers: Callers, now: number): readonly Column<KeyListItem>[] {
  const by = (caller: string | null | undefined): string => (caller ? callers.shown(caller) : '');
  const recent = ({ usage }: KeyListItem) => recentUses(usage?.days ?? [], now);
  return [
    { title: 'id', value: (key) => key.id, short: true },
    { title: 'active', value: (key) => (key.id === active ? 'yes' : 'no') },
    { title: 'last decrypt', value: ({ usage }) => lastUse(usage?.lastDecryptAt, usage), short: true },
    { title: `in ${recentDays} days`, value: (key) => recent(key).decrypts },
    { title: 'by', value: ({ usage }) => by(usage?.lastDecryptBy), short: true, name: true, spare: true },
    { title: 'last encrypt', value: ({ usage }) => lastUse(usage?.lastEncryptAt, usage), short: true, spare: true },
    { title: `in ${recentDays} days`, value: (key) => recent(key).encrypts, spare: true },
    { title: 'by', value: ({ usage }) => by(usage?.lastEncryptBy), short: true, name: true, spare: true },
    { title: 'created', value: (key) => key.createdAt, short: true, spare: true },
  ];
}

function lastUse(at: number | null | undefined, usage: KeyListItem['usage']): string {
  if (typeof at === 'number') return new Date(at).toISOString();
  return usage?.since == null ? 'not known' : `none since ${new Date(usage.since).toISOString()}`;
}

export async function rotate(cli: CliOf<typeof keyring.rotate>): Promise<void> {
  const ringname = cli.get('<NAME>');
  await withClient(cli, async (client) => {
    const answer = await client.rotateKeyring({ ringname });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${ringname} has the new active key ${answer.key.id}`);
  });
}

export async function config(cli: CliOf<typeof keyring.config>): Promise<void> {
  const ringname = cli.get('<NAME>');
  const config = changes(cli);
  await withClient(cli, async (client) => {
    const answer = config ? await client.putConfig({ ringname, config }) : await client.getConfig({ ringname });
    await printThing(cli, answer, configPairs(answer.config));
  });
}

function changes(cli: CliOf<typeof keyring.config>) {
  const maxEncryptCount = cli.get('--max-encrypt-count');
  const rotateAfter = cli.get('--rotate-after');
  const keyProps = cli.get('--key-props');
  const config = given({
    props: cli.get('--props'),
    key: keyProps && { props: keyProps },
    algos: maxEncryptCount === undefined ? undefined : { aes256: { maxEncryptCount } },
    rotateAfter: typeof rotateAfter === 'number' ? rotateAfter / 1000 : rotateAfter,
    offlineDecrypt: cli.get('--offline-decrypt'),
  });
  return Object.keys(config).length > 0 ? config : undefined;
}

export async function remove(cli: CliOf<typeof keyring.remove>): Promise<void> {
  const name = cli.get('<NAME>');
  const details = () =>
    detailsFrom(cli, async (client) => {
      await client.getKeyring({ ringname: name });
      await refuseIfNamed(client, name);
      return [];
    });
  await confirm(
    cli,
    `deletes the keyring ${name}: what it encrypted cannot be decrypted until it is restored, and after 30 days never`,
    { name, details },
  );
  await withClient(cli, async (client) => {
    const answer = await client.deleteKeyring({ name }).catch(async (error) => {
      // A status of 400 has no code of its own.
      const isRefused = error instanceof KmsError && (error.code === 'conflict' || error.code === 'invalid');
      if (isRefused) await refuseIfNamed(client, name).catch(rethrowConflict);
      throw error;
    });
    if (cli.json) await printJson(cli, answer);
    else
      await printLine(cli, `${answer.name} is deleted; for 30 days \`kms keyring restore ${answer.id}\` restores it`);
  });
}

/** Throws `conflict` while active API keys name the keyring. */
async function refuseIfNamed(client: Client, ringname: string): Promise<void> {
  let count = 0;
  let first = '';
  for await (const key of items(client.searchKeyringApiKeys, { keyringname: ringname, limit: 1000 })) {
    if (stateOf(key) !== 'yes') continue;
    count++;
    first ||= key.name || key.keyid;
  }
  if (count === 0) return;
  const who = count === 1 ? `the active API key ${first} names it` : `${count} active API keys name it (${first}, …)`;
  throw new KmsError('conflict', `${ringname} cannot be deleted: ${who}`, {
    hint: `disable ${count === 1 ? 'it' : 'them'} first, see \`kms apikey list --ring ${ringname}\``,
  });
}

/** Callers who may not list keys get the appliance's own error. */
function rethrowConflict(error: unknown): void {
  if (error instanceof KmsError && error.code === 'conflict') throw error;
}

export async function restore(cli: CliOf<typeof keyring.restore>): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.restoreKeyring({
      id: await deletedIdOf('ring', cli.get('<ID>'), deletedKeyrings(client)),
    });
    await printThing(cli, answer, ringPairs(answer.ring));
  });
}

export function ringPairs(ring: KeyRing): readonly Pair[] {
  return [
    ...newRingPairs(ring),
    ['offline', ring.offlineDecrypt ? 'its private key alone opens files' : undefined],
    ['props', JSON.stringify(ring.props)],
    ['created', ring.createdAt],
    ['updated', ring.updatedAt],
  ];
}

/** Pairs common to rings of either service. */
export function newRingPairs(ring: Omit<KeyRing, 'props' | 'offlineDecrypt'>): readonly Pair[] {
  return [
    ['name', ring.displayName],
    ['id', ring.id],
    ['active key', ring.activeKey],
    ['algorithm', ring.activeAlgorithm],
    ['custody', ring.custody],
    ['kem', ring.kem],
    ['public key', shortKey(ring.publicKey)],
    ['fingerprint', fingerprintOf(ring.publicKey)],
  ];
}

/** Shortened: a hybrid key would fill the screen. */
function shortKey(publicKey: string): string {
  return publicKey.length <= 100 ? publicKey : `${publicKey.slice(0, 60)}... (whole with --json)`;
}

const ringColumns: readonly Column<KeyRing>[] = [
  { title: 'name', value: (ring) => ring.displayName, name: true },
  { title: 'kem', value: (ring) => ring.kem, whole: true },
  { title: 'custody', value: (ring) => ring.custody, spare: true },
  { title: 'created', value: (ring) => ring.createdAt, short: true, spare: true },
  { title: 'id', value: (ring) => ring.id, short: true, spare: true },
  { title: 'active key', value: (ring) => ring.activeKey, short: true, spare: true },
];

const deletedColumns: readonly Column<ListedKeyRing>[] = [
  { title: 'name', value: (ring) => ring.displayName, name: true },
  { title: 'id', value: (ring) => ring.id, whole: true },
  { title: 'restorable until', value: (ring) => ring.restorableUntil ?? '', short: true, spare: true },
  { title: 'deleted', value: (ring) => ring.deletedAt ?? '', short: true, spare: true },
];

function configPairs(config: KeyRingConfig): readonly Pair[] {
  return [
    ['encrypts per key', config.algos.aes256.maxEncryptCount],
    [
      'rotates',
      config.rotateAfter === null ? 'never by age' : `once a key is ${ageText(config.rotateAfter * 1000)} old`,
    ],
    ['decrypt offline', config.offlineDecrypt ? 'yes: the private key alone opens files' : 'no'],
    ['props', JSON.stringify(config.props)],
    ['props of new keys', JSON.stringify(config.key.props)],
  ];
}
