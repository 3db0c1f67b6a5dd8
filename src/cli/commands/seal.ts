// `kms seal`: the server forgets its keys and answers nothing until it is unsealed.
import type { SealStatus } from '../../api/seal.ts';
import type { Cli } from '../cli.ts';
import { say } from '../io.ts';
import { ask, printSealStatus, sealStatus, withServer } from '../seal-connection.ts';

export async function run(cli: Cli): Promise<void> {
  await withServer(cli, async (connection) => {
    const { sealed } = await sealStatus(cli, connection);
    const path = connection.way === 'network' ? '/system/seal' : '/local/seal';
    if (sealed) await say(cli.io, 'it is sealed already');
    else await ask<SealStatus>(cli, connection, ['POST', path, {}], true);
    await printSealStatus(cli, await sealStatus(cli, connection));
  });
}
