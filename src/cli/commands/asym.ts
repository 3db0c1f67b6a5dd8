// Keyring commands of the asym service; private keys are kept like those of other keyrings.

import { type CliOf, given } from '../command.ts';
import { withClient } from '../connect.ts';
import type { asym } from '../grammar/asym.ts';
import { nameTaken } from '../near-names.ts';
import { printJson, printLine, printThing } from '../output.ts';
import { checkedRingName, keepAndShow, reserveKeyPlace } from '../ring-key-file.ts';
import { newRingPairs } from './keyring.ts';

export async function create(cli: CliOf<typeof asym.create>): Promise<void> {
  const name = checkedRingName(cli.get('<NAME>'));
  const input = given({ name, kem: cli.get('--kem'), props: cli.get('--props'), keyProps: cli.get('--key-props') });
  await withClient(cli, async (client, appliance) => {
    const place = await reserveKeyPlace(cli, appliance, 'asym', name);
    const answer = await client.createAsymKeyring(input).catch(async (error) => {
      await place.release();
      throw nameTaken(error, name);
    });
    const { ring, privateKey } = answer;
    const print = () => printThing(cli, answer, [...newRingPairs(ring), ['created', ring.createdAt]]);
    await keepAndShow(cli, place, { name, privateKey }, print);
  });
}

export async function showKey(cli: CliOf<typeof asym.showKey>): Promise<void> {
  const input = given({ ringname: cli.get('<NAME>'), keyId: cli.get('<KEYID>'), id: cli.get('--id') || undefined });
  await withClient(cli, async (client) => {
    const key = await client.getAsymKey(input);
    await printThing(cli, key, [
      ['id', key.id],
      ['type', key.type],
      ['props', JSON.stringify(key.props)],
      ['wrapped key', key.keyData.key],
    ]);
  });
}

export async function rotate(cli: CliOf<typeof asym.rotate>): Promise<void> {
  const ringname = cli.get('<NAME>');
  await withClient(cli, async (client) => {
    const answer = await client.rotateAsymKeyring({ ringname });
    if (cli.json) await printJson(cli, answer);
    else await printLine(cli, `${ringname} has the new active key ${answer.key.id}`);
  });
}
