// `kms import vault`: takes transit keys over from a Vault or OpenBao. The source wraps each version of a key to the
// appliance's wrapping key, so that no key is in clear between the two, nor in this process.
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { isCipher } from '../../model/key-types.ts';
import { readAuthorities } from '../authorities.ts';
import { type CliOf, given } from '../command.ts';
import { confirm } from '../confirm.ts';
import { withClient } from '../connect.ts';
import { exitCodes, Interrupted, isInterruption } from '../exit.ts';
import type { importing } from '../grammar/import.ts';
import { say } from '../io.ts';
import { printJson, printTable } from '../output.ts';
import { readSecretFile } from '../secrets.ts';
import { type Column, table } from '../table.ts';
import { isOpenToOthers } from '../target.ts';
import { visible } from '../text.ts';
import { type Candidate, candidateOf, nameProblem, type Outcome, optionsText, typeHere } from '../vault-plan.ts';
import { readSamples, type Sample, tryOut, type Verdict } from '../vault-samples.ts';
import { mostKeys, type VaultSource, vaultSource } from '../vault-source.ts';

type ImportCli = CliOf<typeof importing.vault>;

/** An outcome that is known before anything is done, or a key to bring. */
type Step = Outcome | Candidate;

export async function vault(cli: ImportCli): Promise<number> {
  if (cli.get('--key').length > 0 && cli.get('--prefix') !== undefined) {
    throw cli.wrong('--key and --prefix exclude each other');
  }
  const file = cli.get('--verify');
  const samples = file === undefined ? [] : await readSamples(file);
  const source = await sourceOf(cli);
  const steps = await withClient(cli, (client) => plan(cli, source, client));
  checkEncrypting(cli, steps);
  if (cli.get('--dry-run')) return report(cli, { source, outcomes: steps.map(planned), verdicts: [] });
  const coming = steps.filter(isCandidate);
  if (coming.length > 0) {
    const what = coming.length === 1 ? 'one key' : `${coming.length} keys`;
    await confirm(cli, `takes ${what} over from ${source.address}`, { details: async () => planLines(cli, steps) });
  }
  return withClient(cli, async (client) => {
    const outcomes = coming.length > 0 ? await bringAll(cli, source, client, steps) : steps.map(planned);
    return tried(cli, { source, outcomes, client, samples });
  });
}

async function sourceOf(cli: ImportCli): Promise<VaultSource> {
  const address = addressIn(cli);
  const mount = cli.get('--mount').replace(/^\/+|\/+$/g, '');
  if (!mount.split('/').every((part) => /^[\w.-]+$/.test(part) && !/^\.+$/.test(part))) {
    throw cli.wrong(`--mount: expected a path such as transit or team/transit, got "${cli.get('--mount')}"`);
  }
  const namespace = cli.get('--namespace');
  if (namespace !== undefined && !/^[\x21-\x7e]+$/.test(namespace)) {
    throw cli.wrong('--namespace: expected a path such as team/payments');
  }
  const path = cli.get('--token-file');
  const token = await readSecretFile(path, 'the token');
  if (!/^[\x21-\x7e]+$/.test(token)) throw new KmsError('invalid', `${path} does not hold a token: expected one word`);
  const ca = cli.get('--ca');
  const authorities = ca === undefined ? undefined : { pem: await readAuthorities(cli.io, ca), from: ca };
  return vaultSource({ address, token, mount, namespace, authorities, signal: cli.io.signal });
}

function addressIn(cli: ImportCli): string {
  const text = cli.get('--address');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw cli.wrong('--address: expected an address such as https://vault.example:8200');
  }
  if (isOpenToOthers(url)) {
    throw new KmsError('refused', `the token would go to ${url.host} unencrypted`, { hint: 'use its https address' });
  }
  return url.href.replace(/\/+$/, '');
}

/** A step for each key of the source that is asked for, in the order of their names. */
async function plan(cli: ImportCli, source: VaultSource, client: Client): Promise<readonly Step[]> {
  const named = cli.get('--key');
  const prefix = cli.get('--prefix') ?? '';
  const names = named.length > 0 ? named : (await source.listKeys()).filter((name) => name.startsWith(prefix));
  if (names.length > mostKeys) {
    throw new KmsError('refused', `the source has ${names.length} such keys: at most ${mostKeys} come at once`, {
      hint: 'bring them in parts, with --prefix',
    });
  }
  const steps: Step[] = [];
  const taken = new Set<string>();
  for (const name of [...new Set(names)].sort()) {
    const lower = name.toLowerCase();
    const problem = taken.has(lower) ? 'another key has this name here, where case does not count' : nameProblem(name);
    steps.push(problem === undefined ? await stepOf(cli, source, client, name) : settled(name, 'unsupported', problem));
    taken.add(lower);
  }
  return steps;
}

/** Throws `usage` for a name that --encrypts would do nothing for: such a key could never be made to encrypt later. */
function checkEncrypting(cli: ImportCli, steps: readonly Step[]): void {
  const types = new Map(steps.map(planned).map(({ name, type }) => [name, type]));
  for (const name of cli.get('--encrypts')) {
    const type = types.get(name) ?? 'unknown';
    if (type === 'unknown') throw cli.wrong(`--encrypts: no key ${name} is among those that would come`);
    if (!type.startsWith('rsa-')) throw cli.wrong(`--encrypts: expected RSA keys, but ${name} is ${type}`);
  }
}

async function stepOf(cli: ImportCli, source: VaultSource, client: Client, name: string): Promise<Step> {
  const key = await source.readKey(name);
  if (key === undefined) return settled(name, 'unsupported', 'the source has no such key');
  const about = { type: typeHere(key) ?? key.type, versions: key.latestVersion };
  if (await isHere(client, name)) return settled(name, 'present', hereAlready, about);
  try {
    return candidateOf(key, { encrypts: cli.get('--encrypts'), lowersMinDecrypt: cli.get('--lower-min-decryption') });
  } catch (error) {
    if (error instanceof KmsError) return settled(name, 'unsupported', error.message, about);
    throw error;
  }
}

const hereAlready = 'a managed key has this name here: it is left alone';

/** False if the caller may not see it: the import itself never replaces a key. */
async function isHere(client: Client, name: string): Promise<boolean> {
  try {
    return (await client.getManagedKey({ key: name })).key.deletedAt === undefined;
  } catch (error) {
    if (error instanceof KmsError && (error.code === 'not-found' || error.code === 'forbidden')) return false;
    throw error;
  }
}

function settled(name: string, result: Outcome['result'], note: string, about: Partial<Outcome> = {}): Outcome {
  return { name, type: 'unknown', versions: 0, ...about, result, note };
}

function isCandidate(step: Step): step is Candidate {
  return 'key' in step;
}

function planned(step: Step): Outcome {
  return isCandidate(step) ? outcomeOf(step, 'planned', optionsText(step)) : step;
}

function outcomeOf({ key, type }: Candidate, result: Outcome['result'], note: string, versions?: number): Outcome {
  return { name: key.name, type, versions: versions ?? key.latestVersion, result, note };
}

async function bringAll(
  cli: ImportCli,
  source: VaultSource,
  client: Client,
  steps: readonly Step[],
): Promise<readonly Outcome[]> {
  const { publicKey } = await client.getWrappingKey();
  const warn = (text: string): Promise<void> => say(cli.io, visible(`warning: ${text}`));
  const outcomes: Outcome[] = [];
  const bringEach = async (to: string): Promise<void> => {
    let isReached = true;
    for (const step of steps) {
      if (!isCandidate(step)) {
        outcomes.push(step);
      } else if (!isReached) {
        outcomes.push(outcomeOf(step, 'failed', 'not tried, after that failure'));
      } else {
        const { outcome, error } = await bring(cli, { source, client, to, warn }, step);
        outcomes.push(outcome);
        isReached = error?.code !== 'unavailable' && error?.code !== 'sealed';
      }
    }
  };
  await source.withWrappingKey(publicKey, bringEach, warn);
  return outcomes;
}

interface Way {
  readonly source: VaultSource;
  readonly client: Client;
  /** Name of the wrapping key at the source. */
  readonly to: string;
  warn(text: string): Promise<void>;
}

/** Brings one key over, all of its versions first from the source, so that a failure there leaves no part of it. */
async function bring(
  cli: ImportCli,
  way: Way,
  candidate: Candidate,
): Promise<{ readonly outcome: Outcome; readonly error?: KmsError }> {
  const { key } = candidate;
  let [done, all] = [0, 0];
  try {
    const wrapped = await exported(way, candidate);
    all = wrapped.length;
    for (const each of wrapped) {
      await importVersion(way.client, candidate, each, done > 0);
      done++;
    }
    await configure(way.client, candidate);
    return { outcome: outcomeOf(candidate, 'imported', optionsText(candidate), all) };
  } catch (error) {
    const part = done < all ? `only versions 1 to ${done} of ${all} of ${key.name}` : `${key.name} without its options`;
    if (isInterruption(cli.io, error))
      throw done === 0 ? error : new Interrupted(`${part} came: ${startAgain(key.name)}`);
    if (!(error instanceof KmsError)) throw error;
    if (done === 0 && error.message.startsWith('there is a managed key of this name')) {
      return { outcome: outcomeOf(candidate, 'present', hereAlready) };
    }
    const left = done === 0 ? '' : `; ${part} came: ${startAgain(key.name)}`;
    return { outcome: outcomeOf(candidate, 'failed', `${error.message}${left}`), error };
  }
}

function startAgain(name: string): string {
  return `\`kms key config ${name} --deletion-allowed true\`, delete it and import it again`;
}

/** Each version wrapped, from the first one. Throws `refused` if the source keeps back one that it tells of. */
async function exported({ source, to, warn }: Way, { key }: Candidate): Promise<readonly string[]> {
  const { name, minDecryptVersion } = key;
  const isLowered = minDecryptVersion > 1;
  try {
    if (isLowered) await source.setMinDecryptVersion(name, 1);
    const wrapped = await source.exportKey(name, to);
    if (wrapped.length >= key.latestVersion) return wrapped;
    throw new KmsError('refused', `the source exports ${wrapped.length} of the ${key.latestVersion} versions`);
  } finally {
    if (isLowered) {
      await source.setMinDecryptVersion(name, minDecryptVersion).catch(async ({ message }: Error) => {
        await warn(`set min_decryption_version of ${name} back to ${minDecryptVersion} at the source: ${message}`);
      });
    }
  }
}

async function importVersion(client: Client, candidate: Candidate, wrapped: string, isNewVersion: boolean) {
  const { key, type, encrypts } = candidate;
  const format = isCipher(type) ? ({ allowPlaintextFormat: 'vault' } as const) : {};
  if (isNewVersion) return client.importManagedKey({ key: key.name, wrapped, isNewVersion, ...format });
  return client.importManagedKey({
    ...{ key: key.name, wrapped, isNewVersion, type, exportable: true, derived: key.isDerived, ...format },
    ...(encrypts && { uses: ['encrypt', 'decrypt'] }),
    ...(key.rotateAfter > 0 && { rotateAfter: key.rotateAfter }),
  });
}

/** The options that an import does not take. */
async function configure(client: Client, { key }: Candidate): Promise<void> {
  const changes = given({
    minDecryptVersion: key.minDecryptVersion > 1 ? key.minDecryptVersion : undefined,
    minEncryptVersion: key.minEncryptVersion > 0 ? key.minEncryptVersion : undefined,
    deletionAllowed: key.isDeletionAllowed || undefined,
  });
  if (Object.keys(changes).length > 0) await client.configureManagedKey({ key: key.name, ...changes });
}

interface Found {
  readonly source: VaultSource;
  readonly outcomes: readonly Outcome[];
  readonly verdicts: readonly Verdict[];
}

/** Has the samples opened, and reports all, even if that fails. */
async function tried(
  cli: ImportCli,
  {
    client,
    samples,
    ...rest
  }: Omit<Found, 'verdicts'> & { readonly client: Client; readonly samples: readonly Sample[] },
): Promise<number> {
  let verdicts: readonly Verdict[] = [];
  try {
    verdicts = await tryOut(client, samples);
  } catch (error) {
    await report(cli, { ...rest, verdicts });
    throw error;
  }
  return report(cli, { ...rest, verdicts });
}

/** Prints what came of it, and returns the exit code. */
async function report(cli: ImportCli, { source, outcomes, verdicts }: Found): Promise<number> {
  if (cli.json) {
    await printJson(cli, { address: source.address, dryRun: cli.get('--dry-run'), keys: outcomes, samples: verdicts });
  } else {
    await printOutcomes(cli, outcomes);
    await sayVerdicts(cli, verdicts);
  }
  const isNamed = cli.get('--key').length > 0;
  const isWell = outcomes.every(({ result }) => result !== 'failed' && !(isNamed && result === 'unsupported'));
  return isWell && verdicts.every(({ opens }) => opens) ? exitCodes.done : exitCodes.failed;
}

async function printOutcomes(cli: ImportCli, outcomes: readonly Outcome[]): Promise<void> {
  if (outcomes.length === 0) return say(cli.io, 'the source has no such keys');
  await printTable(cli, outcomes, columns);
  const came = outcomes.filter(({ result }) => result === 'imported').length;
  if (came === 0) return;
  const text = 'they may be exported here as there, until `kms key config NAME --exportable false`';
  await say(cli.io, `${came} of ${outcomes.length} keys came over; ${text}`);
  const left = outcomes.filter(({ result }) => result === 'unsupported').length;
  if (left > 0)
    await say(cli.io, `${left} cannot come: see ${left === 1 ? 'its note' : 'their notes'} in the table above`);
}

async function sayVerdicts(cli: ImportCli, verdicts: readonly Verdict[]): Promise<void> {
  if (verdicts.length === 0) return;
  for (const { line, key, opens, problem } of verdicts) {
    if (!opens) await say(cli.io, visible(`line ${line}, ${key}, does not open here: ${problem}`));
  }
  const open = verdicts.filter(({ opens }) => opens).length;
  const advice = open === verdicts.length ? '' : '; do not switch before all do';
  await say(cli.io, `${open} of ${verdicts.length} samples open here${advice}`);
}

const words: Readonly<Record<Outcome['result'], string>> = {
  imported: 'came over',
  planned: 'would come',
  present: 'left alone',
  unsupported: 'cannot come',
  failed: 'failed',
};

const columns: readonly Column<Outcome>[] = [
  { title: 'key', value: ({ name }) => name, name: true },
  { title: 'type', value: ({ type }) => type, whole: true },
  { title: 'versions', value: ({ versions }) => versions || '' },
  { title: 'result', value: ({ result }) => words[result], whole: true, isRed: ({ result }) => result === 'failed' },
  { title: 'note', value: ({ note }) => note, name: true },
];

/** The plan as a table on stderr, before the question. */
function planLines({ io }: ImportCli, steps: readonly Step[]): readonly string[] {
  return table(steps.map(planned), columns, { columns: io.stderr.columns || 80, colour: false });
}
