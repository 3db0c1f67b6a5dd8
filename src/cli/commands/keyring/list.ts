// `kms keyring list`.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printList } from '../../output.ts';
import { ringColumns } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, (client) =>
    printList(
      cli,
      client.listKeyrings,
      {},
      { columns: ringColumns, empty: 'no keyrings yet: make one with `kms keyring create NAME`' },
    ),
  );
}
