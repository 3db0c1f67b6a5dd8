// Asset commands. Assets are signed records in the headers of encrypted files.

import type { Asset } from '../../api/assets.ts';
import { type CliOf, given } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import type { asset } from '../grammar/asset.ts';
import { type Pair, printJson, printLine, printList, printTable, printThing } from '../output.ts';
import type { Column } from '../table.ts';
import { agoText } from '../text.ts';
import { accountIdOf } from './account.ts';

export async function show(cli: CliOf<typeof asset.show>): Promise<void> {
  await withClient(cli, async (client) => {
    const asset = await client.getAsset({ id: cli.get('<ID>') });
    await printThing(cli, asset, assetPairs(asset));
  });
}

export async function search(cli: CliOf<typeof asset.search>): Promise<void> {
  const account = cli.get('--account');
  const parents = cli.get('--parent');
  const filters = given({
    apikeyId: cli.get('--apikey'),
    keyringId: cli.get('--ring-id'),
    parents: parents.length > 0 ? [...parents] : undefined,
    start: cli.get('--start'),
    end: cli.get('--end'),
    data: cli.get('--contains'),
  });
  await withClient(cli, async (client) => {
    const accountId = account === undefined ? undefined : await accountIdOf(client, account);
    await printList(cli, client.searchAssets, given({ ...filters, accountId }), {
      columns: assetColumns,
      empty: 'no asset matches',
      usual: cli.get('--all') ? undefined : 100,
    });
  });
}

/** Prints the public keys that verify assets without the appliance. */
export async function signingKeys(cli: CliOf<typeof asset.signingKeys>): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.listSigningKeys();
    if (cli.json) return printJson(cli, answer);
    await printTable(cli, answer.keys, [
      { title: 'epoch', value: ({ epoch }) => String(epoch) },
      { title: 'created', value: ({ createdAt }) => createdAt ?? 'not known', short: true },
      { title: 'public key', value: ({ publicKey }) => publicKey, whole: true },
    ]);
  });
}

export async function remove(cli: CliOf<typeof asset.remove>): Promise<void> {
  const id = cli.get('<ID>');
  const details = (): Promise<readonly string[]> =>
    detailsFrom(cli, async (client) => {
      const { createdAt, data } = await client.getAsset({ id });
      return [`The asset was made ${agoText(createdAt)}; its data: ${JSON.stringify(data)}`];
    });
  await confirm(cli, `deletes the asset ${id} for good: headers that carry it will no longer verify`, { details });
  await withClient(cli, async (client) => {
    const asset = await client.deleteAsset({ id });
    if (cli.json) await printJson(cli, asset);
    else await printLine(cli, `${asset.id} is deleted`);
  });
}

function assetPairs(asset: Asset): readonly Pair[] {
  return [
    ['id', asset.id],
    ['created', asset.createdAt],
    ['parents', asset.parents.join(' ')],
    ['data', JSON.stringify(asset.data)],
  ];
}

const assetColumns: readonly Column<Asset>[] = [
  { title: 'id', value: (asset) => asset.id, whole: true },
  { title: 'created', value: (asset) => asset.createdAt, short: true, spare: true },
  { title: 'data', value: (asset) => JSON.stringify(asset.data) },
  { title: 'parents', value: (asset) => asset.parents.join(' '), spare: true },
];
