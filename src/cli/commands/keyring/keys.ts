// `kms keyring keys`.
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printList } from '../../output.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, (client) =>
    printList(cli, client.listKeys, given({ ringname: cli.arg(0), id: cli.isOn('--id') || undefined }), {
      columns: [
        { title: 'id', value: (key) => key.id, whole: true },
        { title: 'type', value: (key) => key.type },
        { title: 'props', value: (key) => JSON.stringify(key.props) },
      ],
      empty: 'no keys',
    }),
  );
}
