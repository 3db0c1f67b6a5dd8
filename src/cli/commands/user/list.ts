// `kms user list`.
import type { Cli } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printList } from '../../output.ts';
import { userColumns } from './shown.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, (client) => printList(cli, client.listUsers, {}, { columns: userColumns, empty: 'no users' }));
}
