// `kms restore`: an appliance from a copy of it, in a new data directory.
import type { Cli } from '../cli.ts';
import { copyKeys } from '../copy-keys.ts';
import { pathFrom, say } from '../io.ts';
import { printThing } from '../output.ts';
import { dataDirectory, refuseRemote } from '../target.ts';
import { visible } from '../visible.ts';

export async function run(cli: Cli): Promise<void> {
  refuseRemote(cli, 'an appliance is restored where it is to run');
  const { restoreAppliance } = await import('../../server/backup/restore-command.ts');
  const restored = await restoreAppliance({
    ...copyKeys(cli),
    from: pathFrom(cli.io, cli.arg(0)),
    data: dataDirectory(cli),
    to: cli.time('--to'),
  });
  const { data, applianceId, madeAt, epoch, keyFile, keyFileMade, proof } = restored;
  await printThing(cli, { data, applianceId, madeAt, epoch: epoch.number, keyFile, ...proof }, [
    ['data directory', data],
    ['appliance', applianceId],
    ['as it was at', madeAt],
    ['epoch', epoch.number],
    ['master key', keyFile],
    ['stores', proof.stores],
    ['transactions', proof.transactions],
    ['activities', proof.activities],
  ]);
  if (keyFileMade) await say(cli.io, visible(`the key file was copied to ${keyFile}`));
  await say(
    cli.io,
    'what was done since is gone: keys that were deleted and credentials that were revoked after it are back',
  );
}
