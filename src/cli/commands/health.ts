// State of an appliance: `status` shows its own report, `doctor` finds problems on this machine, `metrics` prints the
// text for Prometheus.

import type { StandbyAnswer } from '../../api/local/copies.ts';
import type { CryptoInUse, OpenStatus, SealedStatus } from '../../api/local/status.ts';
import type { Readiness } from '../../api/readiness.ts';
import type { SealStatus } from '../../api/system.ts';
import { boundedText } from '../../client/bounded.ts';
import { errorOfFailure, notOurs } from '../../client/failure.ts';
import { unless } from '../../client/unless.ts';
import { KmsError } from '../../errors.ts';
import type { Examination, Finding } from '../../platform/finding.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { ask, type Connection, localOf, readingServed, sealStatus, send, withClient, withLocal } from '../connect.ts';
import { exitCodes } from '../exit.ts';
import type { health } from '../grammar/health.ts';
import { fitted, hasColour, say, write } from '../io.ts';
import { isServing } from '../local-socket.ts';
import { keySources } from '../master-key.ts';
import { type Pair, printJson, printLine, printTable, printThing, timeOn } from '../output.ts';
import { byteCount } from '../streams.ts';
import { dataDirectory, refuseRemote, sharedStore } from '../target.ts';
import { visible } from '../text.ts';
import { printSealStatus } from './seal.ts';

/** Over the network only the health check; on the appliance's own machine everything. */
export async function status(cli: CliOf<typeof health.status>): Promise<number> {
  try {
    return await withClient(cli, async (_client, connection) => {
      const sealed = connection.way === 'in-process' ? undefined : await sealOf(cli, connection);
      if (sealed?.sealed) {
        if (connection.way === 'network') await printSealStatus(cli, sealed);
        else await showLocal(cli, connection);
        return exitCodes.sealed;
      }
      if (connection.way === 'network') await showHealth(cli, connection);
      else await showLocal(cli, connection);
      return exitCodes.done;
    });
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'sealed') throw error;
    await printThing(cli, { sealed: true, message: error.message }, [['sealed', 'yes']]);
    await say(cli.io, visible(error.hint === undefined ? error.message : `${error.message}; ${error.hint}`));
    return exitCodes.sealed;
  }
}

/** Undefined if the server does not know the endpoint. */
async function sealOf(cli: Cli, connection: Connection): Promise<SealStatus | undefined> {
  try {
    return await sealStatus(cli, connection);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  }
}

async function showLocal(cli: Cli, connection: Connection): Promise<void> {
  const status = await localOf(cli, connection).ask('applianceStatus');
  if ('standby' in status) await showStandby(cli, status);
  else if (status.sealed) await showSealed(cli, status);
  else await showAll(cli, status, connection);
}

async function showSealed(cli: Cli, status: SealedStatus): Promise<void> {
  const { kinds, threshold, progress, onPurpose, reason } = status;
  await printThing(cli, status, [
    ['sealed', onPurpose ? 'yes, on purpose' : 'yes'],
    ['why', reason],
    ['master key', kinds.join(', ')],
    ['shares', threshold === undefined ? undefined : `${progress ?? 0} of ${threshold}`],
    ['database', status.shared?.database],
  ]);
  if (!cli.json) await showNodes(cli, status);
}

async function showNodes(cli: Cli, { shared }: SealedStatus | OpenStatus): Promise<void> {
  if (!shared) return;
  await printTable(cli, shared.nodes, [
    { title: 'node', value: ({ places, id, own }) => `${places.join(' ') || id}${own ? ' (this one)' : ''}` },
    { title: 'version', value: ({ build }) => build },
    { title: 'schema', value: ({ schemas }) => `${schemas.system}.${schemas.tenant}` },
    { title: 'up for', value: ({ upFor }) => ageOf(Math.round(upFor / 1000)) },
    { title: 'heard of', value: ({ age, live }) => `${ageOf(Math.round(age / 1000))} ago${live ? '' : ': gone'}` },
  ]);
}

async function showStandby(cli: Cli, status: StandbyAnswer): Promise<void> {
  const { from, appliance, epoch, behind, shipped, copied, proven, hasKey, problem, advice } = status.standby;
  const asOf = ({ transactions, at }: { readonly transactions: number; readonly at: string }): string =>
    `${transactions} transactions, as of ${timeOn(cli, 'stdout', at)}`;
  const distance = behind && `${behind.transactions} transactions, ${ageOf(behind.seconds)}`;
  await printThing(cli, status, [
    ['standby', 'yes: it serves no client until `kms standby promote`'],
    ['version', status.version],
    ['follows', from],
    ['appliance', appliance ?? 'nothing arrived yet'],
    ['epoch', epoch],
    ['behind what is shipped', distance ?? 'not known'],
    ['shipped', shipped ? asOf(shipped) : undefined],
    ['copied', copied ? asOf(copied) : undefined],
    ['proven to open', proven ? asOf(proven) : 'nothing yet'],
    ['master key', hasKey ? 'at hand' : 'not at hand: nothing can be proven'],
    ['problem', problem],
    ['what to do', advice],
  ]);
}

async function showHealth(cli: Cli, connection: Connection): Promise<void> {
  const ready = await ask<Readiness>(cli, connection, { method: 'GET', path: '/readyz' });
  if (ready.status !== 'ready') throw notOurs(connection.baseUrl, 'the state of an appliance');
  const { lastVerifiedBackup: backup, shipping, disk, activity } = ready;
  const behind = shipping && (shipping.ageSeconds === null ? 'nothing yet' : `${ageOf(shipping.ageSeconds)} old`);
  await printThing(cli, { sealed: false, ...ready }, [
    ['server', connection.baseUrl],
    ['label', ready.label?.text],
    ['sealed', 'no'],
    ['status', ready.status],
    ['appliance', ready.appliance],
    ['epoch', ready.epoch],
    ['last verified backup', backup === null ? 'none' : backup && `${ageOf(backup.ageSeconds)} old`],
    ['shipped', shipping && (shipping.ok ? behind : `${behind}; it does not work now`)],
    ['disk', disk && `${disk.freePercent} % free${disk.writable ? '' : '; writes are refused'}`],
    ['activity log', activity && faultLine(activity.faulty, activity.segments)],
  ]);
}

async function showAll(cli: Cli, status: OpenStatus, { way }: Connection): Promise<void> {
  if (cli.json) return printJson(cli, status);
  await printThing(cli, status, [
    ['sealed', status.sealed ? 'yes' : 'no'],
    ['version', status.version],
    ['server', way === 'socket' ? 'running' : 'not running'],
    ['appliance', status.applianceId],
    [
      'master key',
      `${status.masterKey.fingerprint} (${status.masterKey.custodians.map(({ kind }) => kind).join(', ')})`,
    ],
    ['crypto', way === 'socket' ? cryptoLine(status.crypto) : undefined],
    ...copyLines(cli, status.copies),
    ...status.activityTo.map(streamLine),
    ['activity kept', retentionLine(status.activityRetention)],
    ...status.tenants.flatMap((tenant) => droppedLine(cli, tenant)),
    ['clock', clockLine(status.clock)],
    ['disk', diskLine(status.disk)],
    ['activity log', faultsOf(status)],
    ['database', status.shared?.database],
  ]);
  await showNodes(cli, status);
  await printTable(cli, status.tenants, [
    { title: 'tenant', value: ({ name }) => name, name: true },
    { title: 'hosts', value: ({ hosts }) => hosts.join(' '), name: true },
    { title: 'keyrings', value: ({ counts }) => counts.keyrings },
    { title: 'users', value: ({ counts }) => counts.users },
    { title: 'API keys', value: ({ counts }) => counts.apikeys },
    { title: 'activities', value: ({ store }) => store.activityCount - (store.activityDropped?.seq ?? 0) },
    { title: 'writable', value: ({ store }) => (store.writable ? 'yes' : `no: ${store.reason ?? ''}`) },
    { title: 'accounts', value: ({ counts }) => counts.accounts, spare: true },
    { title: 'assets', value: ({ counts }) => counts.assets, spare: true },
    { title: 'managed keys', value: ({ counts }) => counts.managedKeys, spare: true },
    { title: 'log', value: ({ store }) => byteCount(store.logBytes), spare: true },
    { title: 'snapshot', value: ({ store }) => byteCount(store.snapshotBytes), spare: true },
    { title: 'activity', value: ({ store }) => byteCount(store.activityBytes), spare: true },
    {
      title: 'checkpoint',
      value: ({ store }) => (store.lastCheckpointAt ? new Date(store.lastCheckpointAt).toISOString() : 'none yet'),
      spare: true,
      short: true,
    },
  ]);
}

function cryptoLine(crypto: CryptoInUse): string {
  if (crypto.by === 'node') return `node:crypto (OpenSSL ${crypto.openssl})`;
  return crypto.problem === undefined ? 'noble' : `noble, since node:crypto failed its self-test: ${crypto.problem}`;
}

function copyLines(cli: Cli, copies: OpenStatus['copies']): Pair[] {
  const { epoch, lastVerified, backupAge, shipping, shippingAge } = copies;
  const restored = epoch.restoredAt === undefined ? '' : `, restored at ${timeOn(cli, 'stdout', epoch.restoredAt)}`;
  const shipped = shipping?.error ?? (shippingAge === undefined ? 'nothing yet' : `${ageOf(shippingAge)} old`);
  return [
    ['epoch', `${epoch.number}${restored}`],
    ['last verified backup', lastVerified ? `${ageOf(backupAge ?? 0)} old, ${lastVerified.file ?? ''}` : 'none'],
    ['shipped', shipping && `${shipping.to}: ${shipped}`],
  ];
}

/** Numbered as in the metrics if there are several. */
function streamLine(
  { to, lagRecords, lagSeconds, error }: OpenStatus['activityTo'][number],
  at: number,
  { length }: OpenStatus['activityTo'],
): Pair {
  const lag = lagRecords === 0 ? 'up to date' : `${lagRecords} records behind, for ${ageOf(lagSeconds)}`;
  const state = error === undefined ? lag : `${lag}; ${error}`;
  return [length === 1 ? 'activity to' : `activity to (${at + 1})`, `${to}: ${state}`];
}

function retentionLine(retention: OpenStatus['activityRetention']): string | undefined {
  if (!retention) return undefined;
  const { seconds, waitingRecords } = retention;
  const waiting = waitingRecords > 0 ? `; ${waitingRecords} older records wait until they have arrived` : '';
  return `${ageOf(seconds)}${waiting}`;
}

function clockLine(clock: OpenStatus['clock']): string | undefined {
  if (!clock) return undefined;
  const { aheadSeconds, believedAfterSeconds } = clock;
  const until = `nothing is erased for its age until that has lasted ${ageOf(believedAfterSeconds)} more`;
  return `${ageOf(aheadSeconds)} ahead of where it was last seen: ${until}`;
}

/** First record still kept of a tenant's activity log, if retention dropped some. */
function droppedLine(cli: Cli, { name, store: { activityDropped: dropped } }: OpenStatus['tenants'][number]): Pair[] {
  if (!dropped) return [];
  const until = timeOn(cli, 'stdout', dropped.until);
  return [[`activity of ${name}`, `from record ${dropped.seq + 1} on; those up to ${until} were dropped by retention`]];
}

function ageOf(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

function diskLine(disk: OpenStatus['disk']): string | undefined {
  if (!disk) return undefined;
  const free = `${disk.freePercent} % free (${byteCount(disk.freeBytes)})`;
  return disk.reason === undefined ? free : `${free}; writes are refused: ${disk.reason}`;
}

/** Undefined if no file of the activity logs is known to be damaged. */
function faultsOf({ system, tenants }: OpenStatus): string | undefined {
  const stores = [{ name: 'the appliance itself', store: system }, ...tenants];
  const named = stores.flatMap(({ name, store }) =>
    store.activityFaults.map(({ path, problem }) => `${name}: ${path} ${problem}`),
  );
  return named.length === 0 ? undefined : faultLine(named.length, named);
}

function faultLine(count: number, [first = '']: readonly string[]): string {
  const others = count > 1 ? `, and ${count - 1} more files are missing or changed` : '';
  return `${first}${others}; see \`kms doctor\``;
}

/** If a server runs, it examines its own stores. */
export async function doctor(cli: CliOf<typeof health.doctor>): Promise<number> {
  refuseRemote(cli, 'doctor works on the machine of the appliance only');
  const data = await dataDirectory(cli);
  const isServed = await isServing(data).catch(() => false);
  const served = (): Promise<Examination> => withLocal(cli, ({ ask }) => ask('examineAppliance'));
  const standby = (): Promise<StandbyAnswer['standby'] | undefined> =>
    withLocal(cli, async ({ ask }) => {
      const status = await ask('applianceStatus');
      return 'standby' in status ? status.standby : undefined;
    });
  const { examine } = await import('../../doctor/doctor.ts');
  const options = {
    ...given({
      data,
      keyFile: cli.globals.get('--key-file'),
      tlsCert: cli.get('--tls-cert'),
      tlsKey: cli.get('--tls-key'),
    }),
    sources: await keySources(cli),
    served: isServed ? served : undefined,
    standby: isServed ? standby : undefined,
    store: sharedStore(cli),
  };
  const examineAndShow = async (): Promise<number> => {
    const examination = await unless(cli.io.signal, () => examine(options));
    const isWell = examination.findings.every(({ severity }) => severity === 'advice');
    if (cli.json) await printJson(cli, { ok: isWell, ...examination });
    else await show(cli, examination);
    return isWell ? exitCodes.done : exitCodes.failed;
  };
  return isServed ? readingServed(examineAndShow) : examineAndShow();
}

const colours: Readonly<Record<Finding['severity'], number>> = { error: 31, warning: 33, advice: 36 };
/** Before each line of advice. */
const indent = '  ';

async function show(cli: Cli, { findings, stores, activities, dropped, crypto }: Examination): Promise<void> {
  const colour = hasColour(cli.io, cli.io.stdout);
  for (const { severity, name, subject, message, advice } of findings) {
    const found = fitted(cli.io.stdout, visible(`${severity} ${name}: ${subject}: ${message}`));
    const word = colour ? `\u001b[${colours[severity]}m${severity}\u001b[0m` : severity;
    const remedy = fitted(cli.io.stdout, visible(advice), indent).replaceAll('\n', `\n${indent}`);
    await write(cli.io.stdout, `${word}${found.slice(severity.length)}\n${indent}${remedy}\n`);
  }
  const counts = (['error', 'warning', 'advice'] as const).map(
    (severity) => findings.filter((each) => each.severity === severity).length,
  );
  const before = dropped > 0 ? ` (${dropped} before them were dropped by retention)` : '';
  await printLine(
    cli,
    `examined: ${stores} stores, ${activities} activities${before}; ` +
      `${crypto ? `crypto: ${cryptoLine(crypto)}; ` : ''}` +
      `errors: ${counts[0]}, warnings: ${counts[1]}, advice: ${counts[2]}`,
  );
}

/** Maximum bytes: a few hundred for each of very many tenants. */
const longestMetrics = 64 * 1024 * 1024;

export async function metrics(cli: CliOf<typeof health.metrics>): Promise<void> {
  await withClient(cli, async (_client, connection) => {
    const { baseUrl, headers, tenantHeaders } = connection;
    const own = { ...headers, ...tenantHeaders };
    const response = await send(cli, connection, { method: 'GET', path: '/metrics', headers: own });
    const text = await boundedText(response, longestMetrics, baseUrl).catch((cause: unknown) => {
      throw errorOfFailure(cause, baseUrl, cli.io.signal);
    });
    if (!response.headers.get('content-type')?.startsWith('text/plain')) throw notOurs(baseUrl, 'metrics');
    if (cli.json) return printJson(cli, { metrics: text });
    await write(cli.io.stdout, text);
  });
}
