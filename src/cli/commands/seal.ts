// Seals a server, and unseals it with a passphrase, a key or a share. Typed secrets are not echoed.
import type { SealStatus, UnsealStep } from '../../api/system.ts';
import { type CustodianKind, typedStep } from '../../model/custodian-kinds.ts';
import type { Cli, CliOf } from '../command.ts';
import { confirmAtTerminal } from '../confirm.ts';
import { ask, type Connection, isServed, localOf, sealStatus, withServer } from '../connect.ts';
import type { sealing } from '../grammar/seal.ts';
import { say } from '../io.ts';
import { keySources } from '../master-key.ts';
import { printThing } from '../output.ts';
import { givenPassphrase, readLines, readSecret } from '../secrets.ts';
import { dataDirectory, isOpenToOthers, remoteOf, sharedStore } from '../target.ts';

export async function seal(cli: CliOf<typeof sealing.seal>): Promise<void> {
  const act = async (connection: Connection): Promise<void> => {
    const { sealed, kinds } = await sealStatus(cli, connection);
    if (sealed) await say(cli.io, 'it is sealed already');
    else await confirmAtTerminal(cli, whatStops(kinds));
    // Also if sealed already: it then stays sealed even when its key becomes available.
    if (connection.way !== 'network') await localOf(cli, connection).ask('sealAppliance');
    else if (!sealed) {
      const { headers } = connection;
      await ask<SealStatus>(cli, connection, { method: 'POST', path: '/system/seal', body: {}, headers });
    }
    await printSealStatus(cli, await sealStatus(cli, connection));
  };
  await withServer(cli, act, { orNode: true });
}

/** Names of the things that open the appliance, by kind of custodian. */
const keeperNames: ReadonlyMap<string, string> = new Map<CustodianKind, string>([
  ['keyfile', 'the key file'],
  ['passphrase', 'the passphrase'],
  ['shares', 'enough shares'],
  ['exec', 'the command that gives the key'],
  ['env', 'the key in KMS_MASTER_KEY'],
  ['credential', 'the systemd credential'],
  ['recovery-kit', 'the recovery kit'],
]);

/** The deed in words: what stops, until when. */
function whatStops(kinds: readonly string[]): string {
  const how =
    kinds.length === 0 ? '' : `, which takes ${kinds.map((kind) => keeperNames.get(kind) ?? kind).join(' or ')}`;
  return (
    'seals the appliance: encrypting, decrypting, logging in and the console stop for everybody, backups and streaming ' +
    `too, until somebody unseals it${how}`
  );
}

export async function unseal(cli: CliOf<typeof sealing.unseal>): Promise<void> {
  const ended = await endedHere(cli);
  if (ended) return printSealStatus(cli, ended);
  const act = async (connection: Connection): Promise<void> => {
    let status = await sealStatus(cli, connection);
    if (!status.sealed) {
      if (!cli.json) await say(cli.io, 'it is not sealed');
      return printSealStatus(cli, status);
    }
    if (connection.way === 'network' && isOpenToOthers(new URL(connection.baseUrl))) {
      await say(cli.io, 'warning: what you enter goes over the network unencrypted; use an https address');
    }
    for (const step of await stepsWanted(cli, status)) {
      status = await ask<SealStatus>(cli, connection, { method: 'POST', path: '/system/unseal', body: step });
      if (!status.sealed) break;
    }
    await printSealStatus(cli, status);
  };
  await withServer(cli, act, { orNode: true });
}

/**
 * Ends a deliberate seal if no server runs, using any custodian that opens the data directory; undefined if there is no
 * such seal.
 */
async function endedHere(cli: Cli): Promise<SealStatus | undefined> {
  const data = await dataDirectory(cli);
  if ((await remoteOf(cli)) !== undefined || (await isServed(cli))) return undefined;
  const store = sharedStore(cli);
  const { wasSealedOnPurpose } = await import('../../cluster/held-directory.ts');
  if (!(await wasSealedOnPurpose({ data, store }))) return undefined;
  const { openAppliance } = await import('../../appliance/command-appliance.ts');
  const sources = await keySources(cli);
  const askPassphrase = async (): Promise<string | undefined> =>
    sources.askPassphrase ? sources.askPassphrase() : readSecret(cli, 'passphrase');
  const keyFile = cli.globals.get('--key-file');
  const appliance = await openAppliance({
    data,
    store,
    keyFile,
    sources: { ...sources, askPassphrase },
    unseals: true,
  });
  const kinds = [...new Set(appliance.custodians().map(({ kind }) => kind))];
  await appliance.close();
  return { sealed: false, kinds };
}

async function stepsWanted(
  cli: CliOf<typeof sealing.unseal>,
  { kinds, threshold, progress }: SealStatus,
): Promise<readonly UnsealStep[]> {
  if (cli.get('--reset')) return [{ reset: true }];
  const keyFile = cli.globals.get('--key-file');
  if (keyFile !== undefined) {
    const { keyFileLine } = await import('../../custody/key-file.ts');
    return [{ key: await keyFileLine(keyFile) }];
  }
  const passphrase = await givenPassphrase(cli);
  if (passphrase !== undefined) return [{ passphrase }];
  const byHand = kinds.filter((kind) => kind === 'passphrase' || kind === 'shares');
  const { stdin, stderr } = cli.io;
  if (stdin.isTTY && stderr.isTTY) {
    const share = `share (${progress ?? 0} of ${threshold} given)`;
    const what = byHand.map((kind) => (kind === 'shares' ? share : 'passphrase')).join(' or ');
    const otherwise = kinds.includes('keyfile') ? 'use the key file' : 'look for the key again';
    const text = await readSecret(cli, what || `recovery code (or Enter to ${otherwise})`);
    return text === '' ? [{ retry: true }] : [typedStep(text)];
  }
  // Shares of several people may come together; a passphrase is one line.
  const lines = byHand.includes('shares') ? await readLines(cli, 'shares') : [await readSecret(cli, 'passphrase')];
  const steps = lines.filter((line) => line !== '').map(typedStep);
  return steps.length === 0 ? [{ retry: true }] : steps;
}

export async function printSealStatus(cli: Cli, status: SealStatus): Promise<void> {
  const { sealed, kinds, threshold, progress } = status;
  await printThing(cli, status, [
    ['sealed', sealed ? 'yes' : 'no'],
    ['master key', kinds.join(', ')],
    ['shares', threshold === undefined ? undefined : `${progress ?? 0} of ${threshold}`],
  ]);
}
