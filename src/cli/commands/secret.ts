// Commands for secrets. Their values come from files or stdin, and never from the command line.
import { type ExactJson, numberProblemIn, parseExactly } from '../../api/exact-json.ts';
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { SecretMetadata, SecretVersion } from '../../api/secrets.ts';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../model/json.ts';
import { type CliOf, given } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import { textIn } from '../files.ts';
import type { secret } from '../grammar/secret.ts';
import { pathFrom, say, write } from '../io.ts';
import { dependentLines } from '../key-dependents.ts';
import { type Pair, printJson, printLine, printTable, printThing, sayWarning } from '../output.ts';
import { readSecretBytes } from '../secrets.ts';
import { openOutput, readInput, writesToStdout } from '../streams.ts';
import type { Column } from '../table.ts';
import { visible } from '../text.ts';

type PutCli = CliOf<typeof secret.put>;

export async function put(cli: PutCli): Promise<void> {
  const path = cli.get('<PATH>');
  const value = await readValue(cli);
  await withClient(cli, async (client) => {
    const answer = await client.writeSecret({ path, value, ...given({ follows: cli.get('--cas') }) }).catch((error) => {
      throw inOwnWords(error, path);
    });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${path} has the new version ${answer.secret.version}`);
  });
}

/** Bytes of a value as text; the appliance takes as many without spaces. */
const longestText = 65_536;

async function readValue(cli: PutCli): Promise<JsonObject> {
  const file = cli.get('[FILE]');
  const isFile = file !== undefined && file !== '-';
  const from = isFile ? pathFrom(cli.io, file) : 'stdin';
  const parsed = parsedIn(textIn(isFile ? await readSecretBytes(from, 'the value') : await stdin(cli), from, 'JSON'));
  const value = parsed?.value;
  if (!parsed || !isJsonObject(value)) {
    throw new KmsError('invalid', `${from}: expected a JSON object such as {"password": "…"}`);
  }
  const problem = numberProblemIn(parsed);
  if (problem !== undefined) throw new KmsError('invalid', `${from}: ${problem}`);
  return value;
}

function stdin(cli: PutCli): Promise<Uint8Array> {
  if (cli.io.stdin.isTTY) throw cli.wrong('expected FILE with the value, or the value on stdin');
  return readInput(cli, undefined, { what: 'the value', most: longestText });
}

/** Undefined for what is no JSON: the parser's own message would quote the secret. */
function parsedIn(text: string): ExactJson | undefined {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

/** Problems with the version that a write follows, which on the wire have the words of Vault. */
function inOwnWords(error: unknown, path: string): unknown {
  if (!(error instanceof KmsError) || !error.message.startsWith('check-and-set parameter')) return error;
  const isMissing = error.message.includes('required');
  const message = isMissing
    ? `each write to ${path} must name the version that it follows`
    : `the latest version of ${path} is another one`;
  const hint = isMissing ? 'give --cas N, see `kms secret show`' : `see \`kms secret show ${path}\``;
  return new KmsError(error.code, message, { hint, cause: error });
}

/** Written values are for their owner alone. */
const privateMode = 0o600;

export async function get(cli: CliOf<typeof secret.get>): Promise<void> {
  const path = cli.get('<PATH>');
  const version = cli.get('--version');
  const read = () =>
    withClient(cli, async (client) => {
      const answer = await client.readSecret({ path, ...given({ version: version?.toString() }) });
      if (answer.value === undefined) throw gone(answer.secret);
      await sayWarning(cli, answer.warning);
      return { ...answer, value: answer.value };
    });
  if (writesToStdout(cli)) {
    const answer = await read();
    if (cli.json || !cli.io.stdout.isTTY) return printJson(cli, cli.json ? answer : answer.value);
    return write(cli.io.stdout, `${harmless(JSON.stringify(answer.value, null, 2))}\n`);
  }
  const output = await openOutput(cli, { binary: false, mode: privateMode });
  let answer: Awaited<ReturnType<typeof read>>;
  try {
    answer = await read();
    await output.write(new TextEncoder().encode(`${JSON.stringify(answer.value, null, 2)}\n`));
    await output.commit();
  } catch (error) {
    await output.discard();
    throw error;
  }
  if (cli.json) return printJson(cli, given({ secret: answer.secret, warning: answer.warning }));
  const file = pathFrom(cli.io, cli.get('--output') ?? '');
  await say(cli.io, visible(`${file} has version ${answer.secret.version} of ${path}, in clear: keep it safe`));
}

/** JSON with escapes for what a terminal would obey or hide. */
function harmless(json: string): string {
  return json.replace(/[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

function gone({ path, version, state }: SecretVersion): KmsError {
  if (state === 'destroyed') return new KmsError('refused', `version ${version} of ${path} is destroyed`);
  return new KmsError('refused', `version ${version} of ${path} is deleted`, {
    hint: `bring it back with \`kms secret undelete ${path} --version ${version}\`, or read another with --version`,
  });
}

export async function list(cli: CliOf<typeof secret.list>): Promise<void> {
  const folder = cli.get('[FOLDER]')?.replace(/\/$/, '');
  await withClient(cli, async (client) => {
    const answer = await client.listSecrets(given({ folder: folder === '' ? undefined : folder }));
    if (cli.json) return printJson(cli, answer);
    if (answer.names.length === 0) return say(cli.io, 'no secrets here: write one with `kms secret put PATH FILE`');
    for (const name of answer.names) await printLine(cli, name);
  });
}

type Version = NonNullable<ManagedKey['versions']>[number];

const versionColumns: readonly Column<Version>[] = [
  { title: 'version', value: ({ version }) => version },
  { title: 'state', value: ({ state }) => state, whole: true },
  { title: 'created', value: ({ createdAt }) => createdAt, short: true },
  { title: 'deleted', value: ({ deletedAt }) => deletedAt ?? '', short: true, spare: true },
];

export async function show(cli: CliOf<typeof secret.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.getSecretMetadata({ path: cli.get('<PATH>') });
    await printThing(cli, answer, secretPairs(answer.secret));
    const { versions } = answer.secret;
    if (cli.json || versions.length === 0) return;
    await printLine(cli, '');
    await printTable(cli, versions, versionColumns);
  });
}

function secretPairs(found: SecretMetadata): readonly Pair[] {
  const tagged = Object.entries(found.tags).map(([name, value]) => `${name}=${value}`);
  return [
    ['path', found.path],
    ['managed key', found.name],
    ['id', found.id],
    ['state', found.state],
    ['latest version', found.latestVersion === 0 ? 'none yet' : found.latestVersion],
    ['versions kept', found.maxVersions === 0 ? '1,000' : found.maxVersions],
    ['writes need --cas', found.casRequired ? 'yes' : 'no'],
    ['tags', tagged.length > 0 ? tagged.join(' ') : undefined],
    ['created', found.createdAt],
    ['updated', found.updatedAt],
  ];
}

export async function config(cli: CliOf<typeof secret.config>): Promise<void> {
  const changes = given({
    maxVersions: cli.get('--max-versions'),
    casRequired: cli.get('--cas-required'),
    tags: cli.get('--tag'),
  });
  if (Object.keys(changes).length === 0) throw cli.wrong('expected a setting to change, see `kms secret show`');
  await withClient(cli, async (client) => {
    const answer = await client.putSecretMetadata({ path: cli.get('<PATH>'), ...changes });
    await printThing(cli, answer, secretPairs(answer.secret));
  });
}

export async function remove(cli: CliOf<typeof secret.remove>): Promise<void> {
  const path = cli.get('<PATH>');
  const versions = cli.get('--version');
  if (versions.length > 0) {
    const details = () => looked(cli, path);
    await confirm(cli, `deletes ${versionsText(versions)} of ${path}: nothing reads it until it is brought back`, {
      details,
    });
    await changed(cli, (client) => client.deleteSecretVersions({ path, versions: [...versions] }), 'deleted');
    return;
  }
  const columns = (cli.io.stderr.columns || 80) - 2;
  const details = () =>
    detailsFrom(cli, async (client) => {
      const { id, versions: all } = (await client.getSecretMetadata({ path })).secret;
      const count = all.length === 1 ? '1 version' : `${all.length} versions`;
      return [`${path} has ${count}.`, ...(await dependentLines(client, id, { columns }))];
    });
  await confirm(
    cli,
    `deletes the secret ${path} with all its versions: nothing reads it until it is restored, and after 30 days never again`,
    { name: path, details },
  );
  await withClient(cli, async (client) => {
    const answer = await client.deleteSecret({ path });
    if (cli.json) return printJson(cli, answer);
    await printLine(cli, `${path} is deleted; for 30 days \`kms key restore ${answer.id}\` restores it`);
  });
}

export async function undelete(cli: CliOf<typeof secret.undelete>): Promise<void> {
  const input = { path: cli.get('<PATH>'), versions: [...cli.get('--version')] };
  await changed(cli, (client) => client.restoreSecretVersions(input), 'there again');
}

export async function destroy(cli: CliOf<typeof secret.destroy>): Promise<void> {
  const path = cli.get('<PATH>');
  const versions = cli.get('--version');
  const details = () => looked(cli, path);
  await confirm(cli, `destroys ${versionsText(versions)} of ${path}: nothing ever reads it again`, {
    name: path,
    details,
  });
  await changed(cli, (client) => client.destroySecretVersions({ path, versions: [...versions] }), 'destroyed');
}

/** Nothing to show, once there is such a secret. */
function looked(cli: CliOf<typeof secret.undelete>, path: string): Promise<readonly string[]> {
  return detailsFrom(cli, async (client) => {
    await client.getSecretMetadata({ path });
    return [];
  });
}

async function changed(
  cli: CliOf<typeof secret.undelete>,
  change: (client: Client) => Promise<{ readonly versions: number[] }>,
  what: string,
): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await change(client);
    if (cli.json) return printJson(cli, answer);
    const { versions } = answer;
    const path = cli.get('<PATH>');
    if (versions.length === 0) return say(cli.io, visible(`nothing to do: see \`kms secret show ${path}\``));
    await printLine(cli, `${versionsText(versions)} of ${path} ${versions.length === 1 ? 'is' : 'are'} ${what}`);
  });
}

function versionsText(versions: readonly number[]): string {
  return versions.length === 1 ? `version ${versions[0]}` : `versions ${versions.join(', ')}`;
}
