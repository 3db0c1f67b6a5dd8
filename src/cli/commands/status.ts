// `kms status`: how the appliance is. Over the network only what its health check tells; on its own machine everything.

import type { Readiness } from '../../api/health.ts';
import type { SealStatus } from '../../api/seal.ts';
import { errorOfAnswer, errorOfFailure, notOurs } from '../../client/failure.ts';
import { KmsError } from '../../errors.ts';
import type { ApplianceStatus } from '../../server/status.ts';
import type { Cli } from '../cli.ts';
import { type Connection, openConnection } from '../connect.ts';
import { exitCodes } from '../exit-codes.ts';
import { say } from '../io.ts';
import { type Pair, printJson, printTable, printThing } from '../output.ts';
import { printSealStatus, sealStatus } from '../seal-connection.ts';
import { byteCount } from '../transfer.ts';
import { visible } from '../visible.ts';

export async function run(cli: Cli): Promise<number> {
  try {
    const connection = await openConnection(cli);
    try {
      const sealed = connection.way === 'in-process' ? undefined : await sealOf(cli, connection);
      if (sealed?.sealed) {
        await printSealStatus(cli, sealed);
        return exitCodes.sealed;
      }
      if (connection.way === 'network') await showHealth(cli, connection);
      else await showAll(cli, await read<ApplianceStatus>(connection, '/local/status'), connection);
      return exitCodes.done;
    } finally {
      await connection.close();
    }
  } catch (error) {
    if (!(error instanceof KmsError) || error.code !== 'sealed') throw error;
    await printThing(cli, { sealed: true, message: error.message }, [['sealed', 'yes']]);
    await say(cli.io, visible(error.hint === undefined ? error.message : `${error.message}; ${error.hint}`));
    return exitCodes.sealed;
  }
}

/** Undefined where the server knows nothing of it. */
async function sealOf(cli: Cli, connection: Connection): Promise<SealStatus | undefined> {
  try {
    return await sealStatus(cli, connection);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'not-found') return undefined;
    throw error;
  }
}

async function showHealth(cli: Cli, connection: Connection): Promise<void> {
  const ready = await read<Readiness>(connection, '/readyz');
  if (ready.status !== 'ready') throw notOurs(connection.baseUrl, 'the state of an appliance');
  const { lastVerifiedBackup: backup, shipping, disk } = ready;
  const behind = shipping && (shipping.ageSeconds === null ? 'nothing yet' : `${ageOf(shipping.ageSeconds)} old`);
  await printThing(cli, { sealed: false, ...ready }, [
    ['server', connection.baseUrl],
    ['sealed', 'no'],
    ['status', ready.status],
    ['appliance', ready.appliance],
    ['epoch', ready.epoch],
    ['last verified backup', backup === null ? 'none' : backup && `${ageOf(backup.ageSeconds)} old`],
    ['shipped', shipping && (shipping.ok ? behind : `${behind}; it does not work now`)],
    ['disk', disk && `${disk.freePercent} % free${disk.writable ? '' : '; writes are refused'}`],
  ]);
}

async function showAll(cli: Cli, status: ApplianceStatus, { way }: Connection): Promise<void> {
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
    ...copyLines(status.copies),
    ['disk', diskLine(status.disk)],
  ]);
  await printTable(cli, status.tenants, [
    { title: 'tenant', value: ({ name }) => name },
    { title: 'hosts', value: ({ hosts }) => hosts.join(' ') },
    { title: 'keyrings', value: ({ counts }) => counts.keyrings },
    { title: 'users', value: ({ counts }) => counts.users },
    { title: 'accounts', value: ({ counts }) => counts.accounts },
    { title: 'API keys', value: ({ counts }) => counts.apikeys },
    { title: 'assets', value: ({ counts }) => counts.assets },
    { title: 'activities', value: ({ store }) => store.activityCount },
    { title: 'log', value: ({ store }) => byteCount(store.logBytes), spare: true },
    { title: 'snapshot', value: ({ store }) => byteCount(store.snapshotBytes), spare: true },
    { title: 'activity', value: ({ store }) => byteCount(store.activityBytes), spare: true },
    {
      title: 'checkpoint',
      value: ({ store }) => (store.lastCheckpointAt ? new Date(store.lastCheckpointAt).toISOString() : 'none yet'),
      spare: true,
    },
    { title: 'writable', value: ({ store }) => (store.writable ? 'yes' : `no: ${store.reason ?? ''}`) },
  ]);
}

function copyLines({ epoch, lastVerified, backupAge, shipping, shippingAge }: ApplianceStatus['copies']): Pair[] {
  const restored = epoch.restoredAt === undefined ? '' : `, restored at ${epoch.restoredAt}`;
  const shipped = shipping?.trouble ?? (shippingAge === undefined ? 'nothing yet' : `${ageOf(shippingAge)} old`);
  return [
    ['epoch', `${epoch.number}${restored}`],
    ['last verified backup', lastVerified ? `${ageOf(backupAge ?? 0)} old, ${lastVerified.file ?? ''}` : 'none'],
    ['shipped', shipping && `${shipping.to}: ${shipped}`],
  ];
}

function ageOf(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

function diskLine(disk: ApplianceStatus['disk']): string | undefined {
  if (!disk) return undefined;
  const free = `${disk.freePercent} % free (${byteCount(disk.freeBytes)})`;
  return disk.reason === undefined ? free : `${free}; writes are refused: ${disk.reason}`;
}

/** The body of a GET that is no part of the API. Its shape is the server's, which comes in the same executable or is only shown. */
async function read<T>({ baseUrl, fetch }: Connection, path: string): Promise<T> {
  let response: Response;
  try {
    response = await fetch(new Request(baseUrl + path, { headers: { accept: 'application/json' } }));
  } catch (cause) {
    throw errorOfFailure(cause, baseUrl);
  }
  const body: unknown = await response.json().catch(() => undefined);
  if (response.status !== 200 || typeof body !== 'object' || body === null)
    throw errorOfAnswer(response, body, baseUrl);
  return body as T;
}
