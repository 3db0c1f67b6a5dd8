// Backup commands for the whole appliance: create in constant memory, verify, restore, and drill, which does all three.

import { lstat } from 'node:fs/promises';
import { createInterface, type Interface } from 'node:readline';
import type { RestoreResult } from '../../backup/restore-command.ts';
import { unless } from '../../client/unless.ts';
import type { Moved, MoveOptions } from '../../cluster/move.ts';
import type { KeyOptions } from '../../custody/unsealer.ts';
import { KmsError } from '../../errors.ts';
import type { Cli, CliOf } from '../command.ts';
import { type Connection, localOf, send, withClient, withLocal } from '../connect.ts';
import { isNoDirectory } from '../files.ts';
import { standbyWait } from '../grammar/appliance.ts';
import type { backup, copies } from '../grammar/backup.ts';
import { mustReachStdout, pathFrom, say, write } from '../io.ts';
import { printJson, printTable, printThing } from '../output.ts';
import { givenPassphrase, readSecret } from '../secrets.ts';
import { byteCount, toFile, transfer, withProgress } from '../streams.ts';
import { dataDirectory, refuseRemote, sharedStore, storeAt } from '../target.ts';
import { visible } from '../text.ts';

export async function create(cli: CliOf<typeof backup.create>): Promise<void> {
  const out = cli.get('<OUT>');
  await withClient(cli, async (_client, connection) => {
    if (out === '-') await toStdout(cli, await copyOf(cli, connection));
    else await inFile(cli, connection, pathFrom(cli.io, out));
  });
}

async function copyOf(cli: Cli, connection: Connection): Promise<AsyncIterable<Uint8Array>> {
  const { way, headers } = connection;
  const backup =
    way === 'network'
      ? (await send(cli, connection, { method: 'POST', path: '/system/backup', headers })).body
      : await localOf(cli, connection).stream('streamBackup');
  return whole(cli, backup ?? new ReadableStream());
}

/** The stream, with a clear error if it ends early. */
async function* whole(cli: Cli, stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (cause) {
    if (cause instanceof KmsError || cli.io.signal.aborted) throw cause;
    throw brokenOff(cause);
  }
}

function brokenOff(cause: unknown): KmsError {
  return new KmsError('refused', 'the backup broke off: it is incomplete', {
    hint: 'try again; the log of the appliance says why',
    cause,
  });
}

async function toStdout(cli: Cli, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const { stdout } = cli.io;
  if (stdout.isTTY) {
    throw new KmsError('usage', 'a backup does not belong on a terminal', { hint: 'name a file, or pipe it on' });
  }
  mustReachStdout(cli.io);
  for await (const piece of pieces) await write(stdout, piece);
}

/** Writes a backup to a new file and verifies that it is complete. */
export async function writeBackup(cli: Cli, connection: Connection, path: string) {
  let bytes = 0;
  let manifest: Checked['manifest'] | undefined;
  const output = await toFile(path, 0o600, async ({ handle, temporary }) => {
    bytes = (await handle.stat()).size;
    manifest = (await check(temporary)).manifest;
  });
  try {
    await transfer(cli, withProgress(cli, await copyOf(cli, connection), undefined), output);
  } catch (error) {
    await output.discard();
    throw error;
  }
  return { bytes, manifest };
}

async function inFile(cli: Cli, connection: Connection, path: string): Promise<void> {
  const { bytes, manifest } = await writeBackup(cli, connection, path);
  const { faulty: [first, ...others] = [] } = manifest ?? {};
  if (first !== undefined) {
    const what = others.length > 0 ? `${first} and ${others.length} more are` : `${first} is`;
    await say(cli.io, visible(`warning: activity segment ${what} missing or changed in it; see \`kms doctor\``));
  }
  if (cli.json) return printJson(cli, { file: path, bytes, manifest });
  await say(cli.io, visible(`${path}: ${byteCount(bytes)}; see that it restores with \`kms backup verify\``));
}

type Checked = Awaited<ReturnType<typeof check>>;

/** Verifies that the backup is complete. */
async function check(path: string) {
  const { openBackupFile } = await import('../../backup/read.ts');
  try {
    return await openBackupFile(path);
  } catch (error) {
    throw brokenOff(error);
  }
}

export async function verify(cli: CliOf<typeof backup.verify>): Promise<void> {
  const { verifyBackup } = await import('../../backup/verify.ts');
  const path = pathFrom(cli.io, cli.get('<FILE>'));
  const { manifest, bytes, proof } = await verifyBackup(path, await copyKeys(cli), cli.io.signal);
  const shown = { file: path, bytes, manifest, valid: true, restores: proof !== undefined, ...proof };
  await printThing(cli, shown, [
    ['backup', proof ? 'restores' : 'digests fit'],
    ['made at', manifest.createdAt],
    ['appliance', manifest.appliance],
    ['size', byteCount(bytes)],
    ['needs one of', manifest.custodians.map(({ kind, fingerprint }) => `${kind} ${fingerprint}`).join(', ')],
    ['stores', manifest.stores.length],
    ['transactions', proof?.transactions],
    ['activities', proof?.activities],
  ]);
  if (!proof) {
    await say(cli.io, 'warning: without the master key only digests were compared; give it with --key-file');
  }
}

export async function restore(cli: CliOf<typeof copies.restore>): Promise<void> {
  refuseRemote(cli, 'an appliance is restored where it is to run');
  const { restoreAppliance } = await import('../../backup/restore-command.ts');
  const store = sharedStore(cli);
  const options = {
    ...(await copyKeys(cli)),
    from: pathFrom(cli.io, cli.get('<FROM>')),
    data: await dataDirectory(cli),
    to: cli.get('--to'),
  };
  const restored = store
    ? await (await import('../../cluster/move.ts')).restoreToDatabase(options, store)
    : await restoreAppliance(options);
  const { data, applianceId, madeAt, epoch, keyFile, proof } = restored;
  await printThing(cli, { data, applianceId, madeAt, epoch: epoch.number, keyFile, ...proof }, [
    [store ? 'database' : 'data directory', data],
    ['appliance', applianceId],
    ['as it was at', madeAt],
    ['epoch', epoch.number],
    ['master key', keyFile],
    ['stores', proof.stores],
    ['transactions', proof.transactions],
    ['activities', proof.activities],
  ]);
  await sayKeyFile(cli, restored);
  for (const lacking of proof.lacks) {
    const advice = 'put it back from an older backup';
    await say(cli.io, visible(`warning: activity segment ${lacking}; all else is restored; ${advice}`));
  }
  await say(
    cli.io,
    'what was done since is gone: keys that were deleted and credentials that were revoked after it are back',
  );
}

type MoveCli = CliOf<typeof copies.move>;

export async function move(cli: MoveCli): Promise<void> {
  refuseRemote(cli, 'an appliance is moved where it is');
  const [to, from] = [cli.get('--to'), cli.get('--from')];
  if ((to === undefined) !== cli.get('--undo')) throw cli.wrong('give one of --to WHERE and --undo');
  const { moveToDatabase, moveToDirectory, undoMove } = await import('../../cluster/move.ts');
  const { globals } = cli;
  if (to === undefined) {
    if (from !== undefined) throw needsDatabase(cli);
    cli.refuseWithout('--from', ['--wait', '--accept-older']);
    const isHere = globals.isTyped('--data') && !globals.isTyped('--store');
    const undone = await undoMove(await dataDirectory(cli), isHere ? undefined : sharedStore(cli));
    await printThing(cli, { ...undone, undone: true }, [
      ['serves again', undone.from],
      ['had gone to', undone.to],
    ]);
    await say(cli.io, visible(`what was done in ${undone.to} is not here: never serve both`));
    return;
  }
  const isDatabase = /^postgres(?:ql)?:\/\//.test(to);
  const store = isDatabase ? storeAt(cli, to, true) : sharedStore(cli);
  if (!store || (isDatabase && globals.isTyped('--store'))) {
    throw cli.wrong(
      'one of the two must be a database: --data DIR --to postgres://…, or --store postgres://… --to DIR',
    );
  }
  const options = { ...(await copyKeys(cli)), store };
  if (from !== undefined) {
    if (!isDatabase) throw needsDatabase(cli);
    return showShipped(cli, await shippedMove(cli, from, options));
  }
  cli.refuseWithout('--from', ['--wait', '--accept-older']);
  const moved = isDatabase ? await moveToDatabase(options) : await moveToDirectory(options, pathFrom(cli.io, to));
  if (cli.json) return printJson(cli, moved);
  await showMoved(cli, moved);
  await say(cli.io, visible(`${moved.from} is as it was and refuses to serve; serve ${moved.to} instead`));
}

function needsDatabase(cli: MoveCli): KmsError {
  return cli.wrong('--from goes with --to postgres://…: for a directory, follow it with `kms standby`');
}

async function shippedMove(cli: MoveCli, from: string, options: MoveOptions) {
  if (await isNoDirectory(from)) throw cli.wrong(`--from: expected a directory, but ${from} is not one`);
  const { moveShipped } = await import('../../cluster/move-shipped.ts');
  const wait = cli.get('--wait') ?? standbyWait;
  const said = (line: string): Promise<void> => say(cli.io, line);
  return moveShipped({ ...options, from, wait, acceptOlder: cli.get('--accept-older'), said });
}

async function showShipped(cli: MoveCli, moved: Awaited<ReturnType<typeof shippedMove>>): Promise<void> {
  if (cli.json) return printJson(cli, moved);
  const { seconds, isComplete, from, to } = moved;
  await showMoved(cli, moved);
  if (seconds !== undefined) await say(cli.io, `no client was served for ${seconds} s`);
  if (!isComplete) {
    await say(cli.io, 'warning: the appliance did not say that it stopped: what it answered last may be missing');
  }
  await sayKeyFile(cli, moved);
  await say(cli.io, visible(`the appliance that ships to ${from} no longer serves; serve ${to} instead`));
}

/** Names the key file if it is not in the default place. */
async function sayKeyFile(
  cli: Cli,
  { keyFile, keyFileMade }: Pick<RestoreResult, 'keyFile' | 'keyFileMade'>,
): Promise<void> {
  if (keyFile === undefined) return;
  const { defaultKeyFile } = await import('../../custody/key-file.ts');
  const place = defaultKeyFile(await dataDirectory(cli));
  if (keyFileMade) await say(cli.io, visible(`the key file was copied to ${keyFile}`));
  else if (keyFile !== place) {
    const isThere = await lstat(place).catch(() => undefined);
    const why = isThere
      ? `${place} is another key and was left there`
      : `the key was not copied to ${place}, since another user owns that directory`;
    await say(cli.io, visible(`${why}: serve this with --key-file ${keyFile}`));
  }
}

async function showMoved(cli: MoveCli, moved: Moved): Promise<void> {
  await printTable(cli, moved.stores, [
    { title: 'STORE', value: ({ name }) => name },
    { title: 'TRANSACTIONS', value: ({ transactions }) => transactions },
    { title: 'ROWS', value: ({ rows }) => rows },
    { title: 'ACTIVITIES', value: ({ activities }) => activities },
    { title: 'CHAIN HEAD', value: ({ head }) => head, whole: true },
  ]);
  await say(cli.io, visible(`${moved.from} and ${moved.to} hold the same, row by row and to the end of every chain`));
}

export async function drill(cli: CliOf<typeof copies.drill>): Promise<void> {
  const began = performance.now();
  await withLocal(cli, async ({ ask }) => {
    const tried = await unless(cli.io.signal, () => ask('drillBackup'));
    const seconds = Math.round((performance.now() - began) / 100) / 10;
    await printThing(cli, { restores: true, ...tried, seconds }, [
      ['backup', 'restores'],
      ['size', byteCount(tried.bytes)],
      ['stores', tried.stores],
      ['transactions', tried.transactions],
      ['activities', tried.activities],
      ['rows', tried.rows],
      ['took', `${seconds} s`],
    ]);
  });
}

/** Sources of the master key when no appliance is open: as for `serve`, and from people, if they hold it. */
export async function copyKeys(cli: Cli): Promise<KeyOptions> {
  const { io } = cli;
  const { stdin, stderr, env } = io;
  const isTerminal = stdin.isTTY === true && stderr.isTTY === true;
  const keyFile = cli.globals.get('--key-file');
  const lines = new Lines(stdin);
  return {
    data: await dataDirectory(cli),
    keys: {
      ...(keyFile === undefined ? {} : { keyFile }),
      appliance: cli.globals.get('--expect-appliance'),
      env: (name) => env[name],
      signal: io.signal,
      passphrase: () => givenPassphrase(cli),
      ...(isTerminal && { askPassphrase: () => readSecret(cli, 'passphrase') }),
    },
    share: async (given, needed) =>
      isTerminal ? (await readSecret(cli, `share ${given + 1} of ${needed}`)) || undefined : lines.next(),
  };
}

/** Reads shares from stdin, one per line. */
class Lines {
  readonly #input: Cli['io']['stdin'];
  #lines: AsyncIterator<string> | undefined;
  #reader: Interface | undefined;

  constructor(input: Cli['io']['stdin']) {
    this.#input = input;
  }

  async next(): Promise<string | undefined> {
    this.#reader ??= createInterface({ input: this.#input, crlfDelay: Number.POSITIVE_INFINITY });
    this.#lines ??= this.#reader[Symbol.asyncIterator]();
    const { done, value } = await this.#lines.next();
    return done === true || value.trim() === '' ? undefined : value.trim();
  }
}
