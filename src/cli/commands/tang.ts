// Commands for Tang key pairs, which are served at the address of `kms serve --tang-listen`.
import type { TangPair } from '../../api/tang.ts';
import { KmsError } from '../../errors.ts';
import type { Cli, CliOf } from '../command.ts';
import { confirm, detailsFrom } from '../confirm.ts';
import { withClient } from '../connect.ts';
import type { tang } from '../grammar/tang.ts';
import { say } from '../io.ts';
import { type Pair, printJson, printLine, printTable, printThing } from '../output.ts';
import { agoText } from '../text.ts';

export async function list(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.listTangPairs();
    if (cli.json) return printJson(cli, answer);
    if (answer.pairs.length === 0) return say(cli.io, 'no Tang key pairs yet: the first client that asks gets one');
    await printTable(cli, answer.pairs, [
      { title: 'thumbprint', value: ({ thumbprint }) => thumbprint, whole: true },
      { title: 'advertised', value: ({ advertised }) => (advertised ? 'yes' : 'no'), whole: true },
      { title: 'created', value: ({ createdAt }) => createdAt, short: true, spare: true },
      { title: 'recoveries', value: ({ recoveries }) => recoveries },
      { title: 'last', value: ({ recoveredAt }) => recoveredAt ?? 'never', short: true },
    ]);
  });
}

/** Prints the thumbprint alone, so that a script can pass it to clevis. */
export async function show(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const pair = (await client.listTangPairs()).pairs.find(({ advertised }) => advertised);
    if (!pair) throw new KmsError('not-found', 'there is no Tang key pair yet', { hint: 'make one: kms tang rotate' });
    if (cli.json) await printJson(cli, { pair });
    else await printLine(cli, pair.thumbprint);
  });
}

export async function rotate(cli: Cli): Promise<void> {
  await withClient(cli, async (client) => {
    const answer = await client.rotateTangPair();
    await printThing(cli, answer, pairLines(answer.pair));
  });
}

export async function remove(cli: CliOf<typeof tang.remove>): Promise<void> {
  const thumbprint = cli.get('<THUMBPRINT>');
  const details = (): Promise<readonly string[]> =>
    detailsFrom(cli, async (client) => {
      const { pairs } = await client.listTangPairs();
      // Either thumbprint names a pair.
      const pair = pairs.find((each) => each.thumbprint === thumbprint || each.exchange === thumbprint);
      if (!pair) throw new KmsError('not-found', `there is no Tang key pair ${thumbprint}`, { hint: seeList });
      if (pair.advertised) {
        throw new KmsError('conflict', `${thumbprint} cannot be deleted: it is the pair that is advertised`, {
          hint: 'run `kms tang rotate` first',
        });
      }
      return [useOf(pair)];
    });
  await confirm(
    cli,
    `deletes the Tang key pair ${thumbprint} for good: what is bound to it alone can never be unlocked through the appliance again`,
    { name: thumbprint, details },
  );
  await withClient(cli, async (client) => {
    const answer = await client.deleteTangPair({ thumbprint });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${answer.pair.thumbprint} is deleted`);
  });
}

const seeList = 'see `kms tang list`';

function useOf({ recoveries, recoveredAt }: TangPair): string {
  if (recoveredAt === undefined) return 'Nothing was ever recovered with this pair.';
  const times = recoveries === 1 ? 'once' : `${recoveries} times`;
  return `Something was recovered with this pair ${times}, last ${agoText(recoveredAt)}.`;
}

function pairLines(pair: TangPair): readonly Pair[] {
  return [
    ['thumbprint', pair.thumbprint],
    ['exchange key', pair.exchange],
    ['advertised', pair.advertised ? 'yes' : 'no'],
    ['created', pair.createdAt],
  ];
}
