// Standby commands. A standby follows the shipped log of an appliance and takes over on command, whether the standby
// process runs or not.
import type { TakenOverAnswer } from '../../api/local/copies.ts';
import { KmsError } from '../../errors.ts';
import { type CliOf, given } from '../command.ts';
import { withLocal } from '../connect.ts';
import { isNoDirectory, isWithin } from '../files.ts';
import { standbyWait, type standing } from '../grammar/appliance.ts';
import { say } from '../io.ts';
import { isServing } from '../local-socket.ts';
import { serverKeySources } from '../master-key.ts';
import { printThing, timeOn } from '../output.ts';
import { standbyConfig } from '../serve-config.ts';
import { dataDirectory, needNamedDirectory, refuseRemote, sharedStore } from '../target.ts';
import { visible } from '../text.ts';
import { aborted } from './appliance.ts';
import { copyKeys } from './backup.ts';

type StandbyCli = CliOf<typeof standing.standby>;

export async function standby(cli: StandbyCli): Promise<void> {
  refuseRemote(cli, 'a standby is on the machine that is to take over');
  if (sharedStore(cli)) throw cli.wrong('--store: a database has standbys of its own; this is for a data directory');
  const word = cli.get('[promote]');
  if (word !== undefined && word !== 'promote') throw cli.wrong(`expected promote or nothing, got "${word}"`);
  await (word === undefined ? follow(cli) : promote(cli));
}

async function follow(cli: StandbyCli): Promise<void> {
  cli.refuseWithout('`kms standby promote`', ['--wait', '--unfenced', '--accept-older']);
  const from = cli.get('--from');
  if (from === undefined) throw cli.wrong('--from is missing: the directory of `kms serve --ship-to`');
  await checkFrom(cli, from);
  const config = await standbyConfig(cli);
  const { standBy } = await import('../../server/serve.ts');
  const standing = await standBy({ ...config, from, sources: await serverKeySources(cli) });
  try {
    if (config.tlsCert !== undefined || !cli.io.stdin.isTTY) cli.io.onHangup?.(() => void standing.reloadTls());
    const what = standing.serves ? '' : ` (a standby, following ${from})`;
    await say(cli.io, visible(`listening on ${standing.address}${what}`));
    const serving = await Promise.race([standing.tookOver, aborted(cli.io.signal)]);
    if (!serving) return;
    await say(cli.io, visible(`took over: serving on ${serving.url}`));
    if (serving.tangAddress) await say(cli.io, `Tang: listening on ${serving.tangAddress}`);
    if (serving.sealed) await say(cli.io, `${visible(serving.sealed.message)}; open it with \`kms unseal\``);
    await aborted(cli.io.signal);
  } finally {
    await standing.close();
  }
}

async function checkFrom(cli: StandbyCli, from: string): Promise<void> {
  const data = await dataDirectory(cli);
  if ((await isWithin(from, data)) || (await isWithin(data, from))) {
    throw cli.wrong(
      '--from: the shipped directory and the data directory must be two places, neither inside the other',
    );
  }
  if (await isNoDirectory(from)) throw cli.wrong(`--from: expected a directory, but ${from} is not one`);
}

async function promote(cli: StandbyCli): Promise<void> {
  const data = await dataDirectory(cli);
  // Its mark names the appliance that is stopped, and the seal there the key that is read.
  needNamedDirectory(cli, 'decides which appliance is fenced off');
  const how = {
    wait: cli.get('--wait') ?? standbyWait,
    fence: !cli.get('--unfenced'),
    acceptOlder: cli.get('--accept-older'),
  };
  const isRunning = await isServing(data);
  if (isRunning && cli.isTyped('--from')) {
    throw cli.wrong('--from: the running standby follows what it was started with; stop it first, or leave out --from');
  }
  if (!isRunning) return showTaken(cli, await promoteHere(cli, how), how, false);
  await withLocal(cli, async ({ ask }) => {
    const taken = await ask('promoteStandby', { body: how }).catch(withoutKey);
    await showTaken(cli, taken, how, true);
  });
}

function withoutKey(error: unknown): never {
  if (!(error instanceof KmsError) || error.code !== 'sealed') throw error;
  throw new KmsError('sealed', 'the running standby has no master key to take over with', {
    hint: 'end it, give the key to `kms standby promote` itself, and serve the directory with `kms serve`',
  });
}

async function promoteHere(
  cli: StandbyCli,
  how: { wait: number; fence: boolean; acceptOlder: boolean },
): Promise<TakenOverAnswer> {
  const { Standby } = await import('../../backup/standby.ts');
  const from = cli.get('--from');
  if (from !== undefined) await checkFrom(cli, from);
  const { data, ...keys } = await copyKeys(cli);
  const standby = await Standby.open(given({ data, keys, from }));
  try {
    return await standby.takeOver(how);
  } finally {
    await standby.close();
  }
}

async function showTaken(
  cli: StandbyCli,
  taken: TakenOverAnswer,
  { fence }: { readonly fence: boolean },
  isServed: boolean,
): Promise<void> {
  const { data, applianceId, epoch, madeAt, isComplete, transactions, activities, lacks, heads } = taken;
  await printThing(cli, { ...taken, served: isServed }, [
    ['data directory', data],
    ['appliance', applianceId],
    ['as it was at', madeAt],
    ['epoch', epoch],
    ['transactions', transactions],
    ['activities', activities],
    ...Object.entries(heads).map(([dir, { seq, hash }]) => [`log of ${dir}`, `${seq} records, ${hash}`] as const),
    ['complete', isComplete ? 'yes: the one before has stopped, and everything it answered is here' : 'not known'],
    ['served', isServed ? 'yes' : 'not yet'],
  ]);
  for (const lacking of lacks) await say(cli.io, visible(`warning: activity segment ${lacking}; all else is here`));
  if (!isComplete) {
    const at = timeOn(cli, 'stderr', madeAt);
    const what = fence ? 'the one before did not say that it stopped' : 'the one before was told nothing';
    await say(cli.io, `warning: ${what}: what it answered after ${at} is missing; see that it stays stopped`);
  }
  if (isServed) return;
  const { defaultKeyFile } = await import('../../custody/key-file.ts');
  const { keyFile } = taken;
  const isElsewhere = keyFile !== undefined && keyFile !== defaultKeyFile(data);
  await say(cli.io, visible(`next: kms serve --data ${data}${isElsewhere ? ` --key-file ${keyFile}` : ''}`));
}
