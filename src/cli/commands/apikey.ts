// API key commands. A secret is shown once, when its key is made, or saved in a file that only its user can read.

import type { SafeApiKey } from '../../api/apikeys.ts';
import type { Client, InputOf } from '../../client/client.ts';
import { items } from '../../client/pages.ts';
import { KmsError } from '../../errors.ts';
import { isKnownFlag, likelyFlag } from '../../model/flags.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { confirm, confirmAtTerminal, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import { fileError, type NewFile, newFile } from '../files.ts';
import type { apikey } from '../grammar/apikey.ts';
import type { Values } from '../grammar/declaration.ts';
import type { keyed } from '../grammar/option-sets.ts';
import { say } from '../io.ts';
import { warnOfUnknownRings } from '../near-names.ts';
import { type Pair, printJson, printLine, printList, printThing, showOnce } from '../output.ts';
import { readSecret } from '../secrets.ts';
import type { Column } from '../table.ts';
import { agoText, visible } from '../text.ts';
import { accountIdOf, uidQuery } from './account.ts';

export async function create(cli: CliOf<typeof apikey.create>): Promise<void> {
  const accountId = cli.get('--account');
  const input = given({
    accountId,
    ...uidQuery(accountId),
    flags: flagsOf(cli),
    props: cli.get('--props'),
    secret: cli.get('--without-secret') ? false : undefined,
    ...keyedBy(cli),
  });
  const { expiresAt } = input;
  if (typeof expiresAt === 'number' && expiresAt <= Date.now()) {
    throw cli.wrong('--expires: expected a time in the future: the key would never work');
  }
  const path = cli.get('--secret-out');
  if (cli.get('--without-secret')) {
    if (path !== undefined) throw cli.wrong('--secret-out and --without-secret exclude each other');
    return createWithoutSecret(cli, input);
  }
  await withClient(cli, async (client) => {
    // Before the key is made: a secret that cannot be saved is useless.
    const file = path === undefined ? undefined : await newFile(path, 0o600);
    const key = await client.createApiKey(input).catch(async (error) => {
      await file?.discard();
      throw error;
    });
    const failure = file && (await keep(file, `${key.key}\n`));
    const { key: secret, ...safe } = key;
    if (file && failure === undefined) await printThing(cli, safe, apiKeyPairs(key));
    else {
      const shown = printThing(cli, key, [['key', secret], ...apiKeyPairs(key)]);
      await showOnce(
        shown,
        `the API key ${key.keyid} was made, and its secret is lost`,
        `kms apikey revoke ${key.keyid}`,
      );
    }
    await warnOfUnknownRings(cli, client, input.flags ?? {});
    if (granted(key) === '') {
      await say(
        cli.io,
        `warning: the key has no permissions yet; give it some with \`kms apikey update ${key.keyid} --flag FLAG\``,
      );
    }
    if (path === undefined) {
      await say(
        cli.io,
        'the key is shown this once, and the service keeps only a hash of it: give it to the program that needs it, in a ' +
          'file that only its user can read',
      );
    } else if (failure !== undefined) {
      throw fileError('write', path, failure, 'the key is shown above, this once');
    } else await say(cli.io, visible(`the key is in ${path}, and nowhere else`));
  });
}

async function createWithoutSecret(cli: CliOf<typeof apikey.create>, input: InputOf<'createApiKey'>): Promise<void> {
  await withClient(cli, async (client) => {
    const key = await client.createApiKey(input);
    const { key: _, ...safe } = key;
    await printThing(cli, safe, apiKeyPairs(key));
    await warnOfUnknownRings(cli, client, input.flags ?? {});
    await say(cli.io, `the key has no secret: \`kms apikey proof add ${key.keyid}\` says by what it is proved`);
  });
}

/** Writes a secret to its file. Returns the error, if any. */
export async function keep(file: NewFile, text: string): Promise<unknown> {
  try {
    await file.handle.writeFile(text);
    await file.commit();
    return undefined;
  } catch (error) {
    await file.discard();
    return error ?? 'unknown';
  }
}

/** All keys, those of an account, or those that name a ring. */
export async function list(cli: CliOf<typeof apikey.list>): Promise<void> {
  const account = cli.get('--account');
  const ring = cli.get('--ring');
  if (account !== undefined && ring !== undefined)
    throw new KmsError('usage', '--account and --ring exclude each other');
  if (ring === undefined) cli.refuseWithout('--ring', ['--wildcard']);
  const isActive = (key: SafeApiKey): boolean => stateOf(key) === 'yes';
  const style = { columns: columnsFor, empty: 'no API keys', oldestFirst: true, isActive } as const;
  await withClient(cli, (client) => {
    if (account !== undefined) {
      return printList(cli, client.listAccountApiKeys, { accountId: account, ...uidQuery(account) }, style);
    }
    if (ring === undefined) return printList(cli, client.listApiKeys, {}, style);
    const input = given({ keyringname: ring, wildcard: cli.get('--wildcard') || undefined });
    return printList(cli, client.searchKeyringApiKeys, input, style);
  });
}

export async function show(cli: CliOf<typeof apikey.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const key = await client.getApiKey({ apikeyid: await keyIdOf(client, cli.get('<KEYID>')) });
    await printThing(cli, key, apiKeyPairs(key));
  });
}

export async function update(cli: CliOf<typeof apikey.update>): Promise<void> {
  const op = cli.get('--op') ?? 'merge';
  const account = cli.get('--account');
  const ownerName = cli.get('--owner');
  const { allowedAddresses, ...keyedOnly } = keyedBy(cli);
  const anywhere = cli.get('--any-address');
  if (anywhere && allowedAddresses) throw new KmsError('usage', '--allow-address and --any-address exclude each other');
  const changes = given({
    active: cli.get('--active'),
    // Flags to remove were accepted before, whatever their names.
    flags: flagsOf(cli, op === 'delete'),
    props: cli.get('--props'),
    ...keyedOnly,
    allowedAddresses: anywhere ? [] : allowedAddresses,
  });
  if (Object.keys(changes).length === 0 && account === undefined && ownerName === undefined) {
    throw new KmsError('usage', 'nothing to change', {
      hint: 'give --flag, --name, --expires, --allow-address, --any-address, --props, --active, --account or --owner',
    });
  }
  await withClient(cli, async (client) => {
    const references = account === undefined ? undefined : { accountId: await accountIdOf(client, account) };
    const owner = ownerName === undefined ? undefined : (await client.getUser({ username: ownerName })).id;
    const apikeyid = await keyIdOf(client, cli.get('<KEYID>'));
    const key = await client.updateApiKey(given({ apikeyid, op, ...changes, references, owner }));
    await printThing(cli, key, apiKeyPairs(key));
    if (op !== 'delete') await warnOfUnknownRings(cli, client, changes.flags ?? {});
  });
}

export async function revoke(cli: CliOf<typeof apikey.revoke>): Promise<void> {
  const typed = cli.get('<KEYID>');
  await confirmAtTerminal(cli, async () => {
    const [key] = await detailsFrom(cli, async (client) => {
      const { name, keyid, lastUsedAt } = await client.getApiKey({ apikeyid: await keyIdOf(client, typed) });
      return [`${name || keyid} (${lastUse(lastUsedAt)})`];
    });
    return `disables the API key ${key ?? typed}: programs that use it are refused at once`;
  });
  await withClient(cli, async (client) => {
    const key = await client.updateApiKey({ apikeyid: await keyIdOf(client, typed), op: 'merge', active: false });
    if (cli.json) await printJson(cli, key);
    else
      await printLine(
        cli,
        `${called(key)} is inactive; \`kms apikey update ${key.keyid} --active true\` takes that back`,
      );
  });
}

/** A key as people named it, with its id. */
function called({ name, keyid }: Pick<SafeApiKey, 'name' | 'keyid'>): string {
  return name === '' ? keyid : `${name} (${keyid})`;
}

/** The question says which key it is, and when it was last used. */
export async function remove(cli: CliOf<typeof apikey.remove>): Promise<void> {
  const typed = cli.get('<KEYID>');
  const details = (): Promise<readonly string[]> =>
    detailsFrom(cli, async (client) => {
      const { name, keyid, lastUsedAt } = await client.getApiKey({ apikeyid: await keyIdOf(client, typed) });
      return [`${name === '' ? keyid : `${keyid}, ${name}`}: ${lastUse(lastUsedAt)}`];
    });
  await confirm(cli, `deletes the API key ${typed} for good`, { details });
  await withClient(cli, async (client) => {
    const keyid = await keyIdOf(client, typed);
    const answer = await client.deleteApiKeyById({ keyid });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${keyid} is deleted`);
  });
}

function lastUse(at: number | null): string {
  return at === null ? 'never used' : `last used ${agoText(at)}`;
}

/** Letters of an id that a list on a terminal shows. */
const shownEnding = 6;

/**
 * The id of the key that is named by its id, by the end of it as lists show it, or by its name. Throws `refused` if
 * there are several. A caller who may not list keys gives the whole id.
 */
export async function keyIdOf(client: Client, typed: string): Promise<string> {
  if (/^apik_[0-9a-hjkmnp-tv-z]{26}$/.test(typed)) return typed;
  const ending = typed.replace(/^(apik_)?(…|\.\.\.)?/, '');
  const meant: string[] = [];
  try {
    for await (const { keyid, name } of items(client.listApiKeys, { limit: 1000 })) {
      if (name === typed || (ending.length >= shownEnding && keyid.endsWith(ending))) meant.push(keyid);
    }
  } catch (error) {
    if (error instanceof KmsError && error.code === 'forbidden') return typed;
    throw error;
  }
  const [only = typed, ...others] = meant;
  if (others.length === 0) return only;
  throw new KmsError('refused', `${meant.length} API keys are named by ${typed}`, {
    hint: `give the id of one: ${meant.slice(0, 5).join(', ')}${meant.length > 5 ? ', …' : ''}`,
  });
}

export async function validate(cli: CliOf<typeof apikey.validate>): Promise<void> {
  const activity = cli.get('--activity');
  const key = await readSecret(cli, 'API key');
  if (key === '') throw cli.wrong('expected an API key on stdin, got nothing');
  const answer = await withClient(cli, (client) => client.validateApiKey(given({ key, activity })));
  if (cli.json) await printJson(cli, answer);
  else if (answer.valid) await printLine(cli, 'valid');
  if (answer.valid) return;
  throw new KmsError('refused', 'the API key is not valid', {
    hint: 'it does not exist here, is inactive or has expired',
  });
}

type Shown = Omit<SafeApiKey, 'updatedAt'> & Partial<SafeApiKey>;

function apiKeyPairs(key: Shown): readonly Pair[] {
  return [
    ['id', key.keyid],
    ['name', key.name],
    ['active', stateOf(key)],
    ['expires', timeText(key.expiresAt)],
    ['allowed from', key.allowedAddresses.join(' ') || 'anywhere'],
    ['account', key.references.accountId],
    ['flags', granted(key)],
    ['props', JSON.stringify(key.props)],
    ['created', key.createdAt],
    ['created by', key.createdBy ?? 'not known'],
    ['updated', key.updatedAt],
    ['last used', timeText(key.lastUsedAt)],
  ];
}

type ApiKeyColumn = Column<SafeApiKey>;

const whoColumns: readonly ApiKeyColumn[] = [
  { title: 'name', value: (key) => key.name, name: true },
  { title: 'id', value: (key) => key.keyid, short: true },
  { title: 'active', value: stateOf, whole: true },
];
const flags: ApiKeyColumn = { title: 'flags', value: granted, spare: true };
const lastUsed: ApiKeyColumn = { title: 'last used', value: (key) => timeText(key.lastUsedAt), short: true };
const expires: ApiKeyColumn = { title: 'expires', value: (key) => timeText(key.expiresAt), short: true };
const originColumns: readonly ApiKeyColumn[] = [
  { title: 'account', value: (key) => key.references.accountId, short: true, spare: true },
  { title: 'created', value: (key) => key.createdAt, short: true, spare: true },
];

export const apiKeyColumns = [...whoColumns, flags, lastUsed, { ...expires, spare: true as const }, ...originColumns];

/** Milliseconds before its end from which on a key is worth a look. */
const soon = 30 * 86_400_000;

/** Where an active key ends soon, the end is shown rather than the last use. */
function columnsFor(keys: readonly SafeApiKey[]): readonly ApiKeyColumn[] {
  const isEnding = (key: SafeApiKey): boolean =>
    stateOf(key) === 'yes' && key.expiresAt !== null && key.expiresAt < Date.now() + soon;
  if (!keys.some(isEnding)) return apiKeyColumns;
  return [...whoColumns, expires, flags, { ...lastUsed, spare: true }, ...originColumns];
}

export function stateOf({ active, expiresAt }: Pick<SafeApiKey, 'active' | 'expiresAt'>): string {
  if (!active) return 'no';
  return expiresAt !== null && expiresAt <= Date.now() ? 'expired' : 'yes';
}

/** Formats an optional future time. */
export function timeText(milliseconds: number | null): string {
  return milliseconds === null ? 'never' : new Date(milliseconds).toISOString();
}

function granted({ flags }: Pick<SafeApiKey, 'flags'>): string {
  return Object.keys(flags)
    .filter((name) => flags[name] === true)
    .join(' ');
}

function keyedBy(cli: Cli<Values<typeof keyed>>) {
  const addresses = cli.get('--allow-address');
  return given({
    name: cli.get('--name'),
    expiresAt: cli.get('--expires'),
    allowedAddresses: addresses.length > 0 ? [...addresses] : undefined,
  });
}

type Flagged = Cli<{ '--flag': readonly string[]; '--any-flag': boolean }>;

/**
 * The flags object of the repeated --flag. Throws `usage` for a name that grants nothing here, unless any name is
 * allowed.
 */
export function flagsOf(cli: Flagged, any = cli.get('--any-flag')): Record<string, boolean> | undefined {
  const names = cli.get('--flag');
  if (!any) checkKnown('--flag', names);
  return names.length > 0 ? Object.fromEntries(names.map((name) => [name, true])) : undefined;
}

/**
 * Throws `usage` for a name that grants nothing here: it is probably mistyped, and would only show when a request is
 * refused. `anyFlag` says whether the command has --any-flag.
 */
export function checkKnown(option: string, names: readonly string[], anyFlag = true): void {
  const unknown = names.find((name) => !isKnownFlag(name));
  if (unknown === undefined) return;
  const meant = likelyFlag(unknown);
  const question = meant === undefined ? '' : `; did you mean ${meant}?`;
  throw new KmsError('usage', `${option}: "${unknown}" grants nothing in this appliance${question}`, {
    ...(anyFlag && { hint: 'for a flag that a program of your own looks at, add --any-flag' }),
  });
}
