// `kms upgrade`: replaces the executable with another one. Requests to the servers before and after go through the
// local socket, or into the data directory opened by this process if no server runs.

import { readdir, readFile, stat, unlink } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { OpenStatus, SealedStatus } from '../../api/local/status.ts';
import { boundedJson, longestAnswer } from '../../client/bounded.ts';
import { KmsError, reasonOf } from '../../errors.ts';
import { sameJson } from '../../model/json.ts';
import { tenantHeader } from '../../model/names.ts';
import type { Journal, Probe, Service } from '../../upgrade/journal.ts';
import type { Outcome, UpgradePorts } from '../../upgrade/upgrade.ts';
import { version } from '../../version.ts';
import type { Cli, CliOf } from '../command.ts';
import { ask, type Connection, localOf, localUrl, withClient } from '../connect.ts';
import { exitCodes } from '../exit.ts';
import { readSmallText } from '../files.ts';
import { upgradeLimit, type upgrading } from '../grammar/appliance.ts';
import { pathFrom, say } from '../io.ts';
import { isServing, socketFetch } from '../local-socket.ts';
import { printThing } from '../output.ts';
import { dataDirectory, namedDirectory, needNamedDirectory, refuseRemote, sharedStore } from '../target.ts';
import { visible } from '../text.ts';
import { writeBackup } from './backup.ts';

type LocalStatus = OpenStatus | SealedStatus;

type UpgradeCli = CliOf<typeof upgrading.upgrade>;

export async function upgrade(cli: UpgradeCli): Promise<number> {
  refuseRemote(cli, 'an appliance is upgraded where it runs');
  const data = await dataDirectory(cli);
  const [file, key] = [cli.get('[FILE]'), cli.get('--trusted-key')];
  // Validated before anything is done.
  cli.get('--time-limit');
  const { readJournal } = await import('../../upgrade/journal.ts');
  if (cli.get('--status')) return showStatus(cli, await readJournal(data));
  const { alone, resume } = await import('../../upgrade/upgrade.ts');
  if (cli.get('--resume')) {
    if (file !== undefined) throw cli.wrong('--resume takes no FILE');
    await isNodes(cli, data);
    return alone(data, async () => {
      const journal = await readJournal(data);
      if (!journal) {
        await say(cli.io, 'no upgrade was cut off: nothing to do');
        return exitCodes.done;
      }
      needNamedDirectory(cli, ordersSteps);
      await ownExecutable();
      return show(cli, await resume(journal, data, await portsOf(cli, journal.executable)));
    });
  }
  if (file === undefined) throw cli.wrong('FILE is missing: the tarball of a release, or its executable');
  if (key === undefined) throw cli.wrong('--trusted-key is missing: the public key of the publisher of the releases');
  return fromFile(cli, data, pathFrom(cli.io, file), key);
}

/** A journal decides what is run, which file is the executable, and which data are put back. */
const ordersSteps = 'has the journal of an upgrade that was cut off, which says what to run and what to put back';

async function fromFile(cli: UpgradeCli, data: string, file: string, keyFile: string): Promise<number> {
  const { parsePublicKey, readRelease } = await import('../../upgrade/release.ts');
  const { alone, resume, upgrade } = await import('../../upgrade/upgrade.ts');
  const { readJournal } = await import('../../upgrade/journal.ts');
  const { needAppliance } = await import('../../platform/data-dir.ts');
  const isNode = await isNodes(cli, data);
  const release = await readRelease(file, parsePublicKey(await readSmallText(keyFile, 'a public key'), keyFile));
  const executable = await ownExecutable();
  return alone(data, async () => {
    const journal = await readJournal(data);
    if (journal) {
      needNamedDirectory(cli, ordersSteps);
      const ended = await resume(journal, data, await portsOf(cli, journal.executable));
      await say(cli.io, visible(`an upgrade had been cut off: ${outcomeLine(ended)}`));
      if (ended.outcome === 'upgraded') return show(cli, ended);
    }
    if (!isNode) await needAppliance(data);
    const service = await serviceOf(cli, data, executable);
    const ports = await portsOf(cli, executable);
    await say(cli.io, visible(`${file} is version ${release.manifest.version}, signed by the trusted key`));
    const allowDowngrade = cli.get('--allow-downgrade') ?? false;
    return show(cli, await upgrade({ data, executable, version, release, service, allowDowngrade, isNode }, ports));
  });
}

/** Whether the directory belongs to a node. Throws `refused` if it does and the node's database is not named. */
async function isNodes(cli: UpgradeCli, data: string): Promise<boolean> {
  const { dataDirState, ofNode } = await import('../../platform/data-dir.ts');
  if ((await dataDirState(data)) !== 'node') return false;
  if (!sharedStore(cli)) throw ofNode(data);
  return true;
}

/** The file of this program. Throws `refused` if it must not be replaced. */
async function ownExecutable(): Promise<string> {
  const { isSingleExecutable } = await import('../../platform/program-files.ts');
  if (!isSingleExecutable()) {
    throw new KmsError('refused', 'this is not an executable of kms, but its sources', {
      hint: 'run `kms upgrade` with the executable that is to be replaced',
    });
  }
  const path = process.execPath;
  if (!isAbsolute(path) || (await stat(path).catch(() => undefined)) === undefined) {
    throw new KmsError('refused', `${path}: expected to find the executable of this very program there`, {
      hint: 'type its whole path; /proc tells it where that is mounted',
    });
  }
  const listed = await readFile('/var/lib/dpkg/info/kms.list', 'utf8').catch(() => '');
  if (listed.split('\n').includes(path)) {
    throw new KmsError('refused', `${path} belongs to the Debian package kms`, {
      hint: 'install the newer package: apt install ./kms_VERSION_ARCH.deb',
    });
  }
  return path;
}

/** Finds out what runs the server, and how to stop and start it. */
async function serviceOf(cli: UpgradeCli, data: string, executable: string): Promise<Service> {
  const { executableOf, unitOf } = await import('../../upgrade/supervisor.ts');
  const { holderOf } = await import('../../upgrade/files.ts');
  const [stop, start] = [cli.get('--stop'), cli.get('--start')];
  if ((stop === undefined) !== (start === undefined)) throw cli.wrong('--stop and --start go together');
  const runs = await isServing(data);
  const pid = runs ? await holderOf(data) : undefined;
  const running = pid === undefined ? undefined : await executableOf(pid);
  if (running !== undefined && running !== executable) {
    throw new KmsError('refused', `the server runs ${running}, but this is ${executable}`, {
      hint: `run ${running} upgrade`,
    });
  }
  const { uid } = await stat(data);
  if (!runs && process.getuid?.() !== uid) {
    throw new KmsError('refused', `no server runs, and ${data} belongs to another user`, {
      hint: 'start the service first, or run this as that user',
    });
  }
  if (stop !== undefined && start !== undefined) return { kind: 'commands', stop, start };
  const unit = pid === undefined ? undefined : await unitOf(pid);
  if (unit) return unit;
  if (!runs) return { kind: 'none' };
  throw cli.wrong('a server runs here, but not under systemd: stop it first, or say how with --stop and --start');
}

async function portsOf(cli: UpgradeCli, executable: string): Promise<UpgradePorts> {
  const { ServiceControl } = await import('../../upgrade/supervisor.ts');
  const data = await dataDirectory(cli);
  const limit = cli.get('--time-limit') ?? upgradeLimit;
  // Only the typed ones: the server gets the environment variables itself.
  const ofStore = (['--store', '--store-password-file'] as const).filter((option) => cli.globals.isTyped(option));
  const passed = ['--key-file', '--passphrase-file', ...ofStore] as const;
  const args = passed.flatMap((option) => {
    const value = cli.globals.get(option);
    return value === undefined ? [] : [option, value];
  });
  const control = new ServiceControl({
    data,
    isNamed: namedDirectory(cli) !== undefined,
    limit,
    env: cli.io.env,
    args,
  });
  return {
    backUp: (name) => backUp(cli, data, name),
    probe: () => probe(cli),
    stop: (service) => control.stop(service, executable),
    start: ({ service }) => control.start(service, executable),
    check: async (journal, expected) => {
      await say(cli.io, `checking version ${expected}`);
      const isNew = expected === journal.to.version && journal.reason === undefined;
      // A version that is known to work gets more time.
      const until = performance.now() + (isNew ? limit : Math.max(limit, upgradeLimit));
      await check(cli, { data, journal, expected, until, ...(isNew && { signal: cli.io.signal }) }, () =>
        control.failure(journal.service),
      );
    },
    release: (service) => (service.kind === 'none' ? control.endChild() : Promise.resolve()),
    say: (line) => say(cli.io, visible(line)),
    now: Date.now,
  };
}

const backupName = /^before-upgrade-.*\.kms-backup$/;
const keptBackups = 2;

/** Asks the appliance of this machine, before the upgrade. */
async function here<T>(cli: Cli, use: (connection: Connection) => Promise<T>): Promise<T> {
  return withClient(cli, (_client, connection) => {
    if (connection.way === 'network') throw cli.wrong('an appliance is upgraded where it runs: name it with --data');
    return use(connection);
  });
}

async function backUp(cli: Cli, data: string, name: string): Promise<void> {
  const { asOwner } = await import('../../upgrade/files.ts');
  const path = join(data, name);
  await here(cli, (connection) =>
    asOwner(data, async () => {
      await writeBackup(cli, connection, path);
      const older = (await readdir(data)).filter((each) => backupName.test(each)).sort();
      for (const each of older.slice(0, -keptBackups)) await unlink(join(data, each));
    }),
  );
  await say(cli.io, visible(`backup: ${path}`));
}

/** Maximum of tenants probed, with one ring each. */
const mostProbes = 5;

/** Encrypts something with the first ring of each of the first tenants. */
async function probe(cli: Cli): Promise<readonly Probe[]> {
  return here(cli, async (connection) => {
    const status = await localOf(cli, connection).ask('applianceStatus');
    if (status.sealed) throw new KmsError('sealed', 'the appliance is sealed', { hint: 'unseal it with `kms unseal`' });
    const probes: Probe[] = [];
    for (const { name } of status.tenants.slice(0, mostProbes)) {
      const headers = { [tenantHeader]: name };
      const asking = <T>(method: string, path: string, body?: object): Promise<T> =>
        ask<T>(cli, connection, { method, path, body, headers });
      const { data: rings } = await asking<{ data: { name: string }[] }>('GET', '/ks/keyrings?limit=1');
      const [ring] = rings;
      if (!ring) continue;
      const { header } = await asking<{ header: string }>('POST', '/ks/encrypt', { ringname: ring.name });
      probes.push({ tenant: name, header, answer: await asking('POST', '/ks/decrypt', { header }) });
    }
    if (probes.length === 0)
      await say(cli.io, 'there is no keyring: nothing can be decrypted to check the new version');
    return probes;
  });
}

interface Checked {
  readonly data: string;
  readonly journal: Journal;
  readonly expected: string;
  readonly until: number;
  readonly signal?: AbortSignal;
}

const pause = 100;

/** Waits until a server answers on the socket and is unsealed, then checks it. */
async function check(cli: Cli, checked: Checked, failure: () => Promise<string | undefined>): Promise<void> {
  const { journal, expected, until, signal } = checked;
  let last = 'it does not answer';
  let isSaid = false;
  for (; ; await delay(pause, undefined, signal && { signal })) {
    const answer = await asked<LocalStatus>(checked, 'GET', '/local/status').catch((error) => {
      last = `it does not answer: ${reasonOf(error)}`;
      return undefined;
    });
    if (answer && !answer.sealed) return checkOpen(checked, answer, expected);
    if (answer && !isSaid)
      await say(cli.io, 'the appliance is sealed: unseal it in another terminal with `kms unseal`');
    isSaid ||= answer !== undefined;
    const failed = answer ? undefined : await failure();
    if (failed !== undefined) throw new KmsError('refused', `version ${expected} does not serve: ${failed}`);
    if (performance.now() > until) {
      const what = answer ? 'it is sealed' : last;
      const { service } = journal;
      const hint = service.kind === 'systemd' ? { hint: `journalctl -u ${service.unit} says more` } : {};
      throw new KmsError('refused', `version ${expected} does not serve within the time limit: ${what}`, hint);
    }
  }
}

async function checkOpen(checked: Checked, status: OpenStatus, expected: string): Promise<void> {
  if (status.version !== expected) {
    throw new KmsError('refused', `expected version ${expected} to serve, found ${status.version}`, {
      hint: 'what is started is not the executable that was replaced',
    });
  }
  for (const { tenant, header, answer } of checked.journal.probes) {
    const found = await asked<unknown>(checked, 'POST', '/ks/decrypt', { header }, tenant);
    if (sameJson(found, answer)) continue;
    throw new KmsError(
      'refused',
      `version ${expected} decrypts in the tenant ${tenant} to something other than before`,
    );
  }
}

/** A request of the upgrade itself, with a deadline. */
async function asked<T>(
  { data, journal, until, signal }: Checked,
  method: string,
  path: string,
  body?: object,
  tenant?: string,
): Promise<T> {
  const { upgradeHeader } = await import('../../upgrade/journal.ts');
  const late = AbortSignal.timeout(Math.max(1, Math.ceil(until - performance.now())));
  const request = new Request(localUrl + path, {
    method,
    headers: {
      [upgradeHeader]: journal.token,
      ...(tenant !== undefined && { [tenantHeader]: tenant }),
      ...(body && { 'content-type': 'application/json' }),
    },
    body: body ? JSON.stringify(body) : null,
    signal: signal ? AbortSignal.any([late, signal]) : late,
  });
  const response = await socketFetch(data)(request);
  const answer = await boundedJson(response, longestAnswer, localUrl);
  if (response.status !== 200 || answer === undefined) {
    throw new KmsError('refused', `${method} ${path} was answered with ${response.status}: ${JSON.stringify(answer)}`);
  }
  // Cast: callers compare the fields that they use.
  return answer as T;
}

async function show(cli: Cli, ended: Outcome): Promise<number> {
  const { outcome, version, reason, backup } = ended;
  await printThing(cli, { upgrading: false, ...ended }, [
    ['outcome', outcome],
    ['version', version],
    ['because', reason],
    ['backup', backup],
  ]);
  if (outcome !== 'returned') return exitCodes.done;
  throw new KmsError('refused', outcomeLine(ended), {
    hint: `nothing that was acknowledged is lost${backup ? '; the backup made before stays in the data directory' : ''}`,
  });
}

function outcomeLine({ outcome, version, reason }: Outcome): string {
  if (outcome === 'upgraded') return `version ${version} serves`;
  return outcome === 'unchanged'
    ? `version ${version} is this very file`
    : `went back to version ${version}: ${reason}`;
}

async function showStatus(cli: Cli, journal: Journal | undefined): Promise<number> {
  if (!journal) {
    await printThing(cli, { upgrading: false, version }, [
      ['upgrade', 'none is under way'],
      ['version', version],
    ]);
    return exitCodes.done;
  }
  const { steps } = await import('../../upgrade/journal.ts');
  const { step, from, to, startedAt, reason, backup, executable } = journal;
  const { does, holds } = steps[step];
  await printThing(cli, { upgrading: true, version, step, holds, from, to, startedAt, reason, backup, executable }, [
    ['step', `${step}: ${does}`],
    ['clients', holds ? 'are not served' : 'are served'],
    ['from', from.version],
    ['to', to.version],
    ['executable', executable],
    ['began', startedAt],
    ['goes back because', reason],
    ['backup', backup],
  ]);
  await say(cli.io, 'if no `kms upgrade` is running any more, `kms upgrade --resume` finishes it');
  return exitCodes.done;
}
