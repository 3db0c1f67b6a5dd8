// `kms asym create`: as `kms keyring create`, at the asym service.
import { type Cli, given } from '../../cli.ts';
import { withClient } from '../../connect.ts';
import { printThing } from '../../output.ts';
import { checkedRingName, reserveKeyPlace } from '../../ring-key-file.ts';

export async function run(cli: Cli): Promise<void> {
  const name = checkedRingName(cli.arg(0));
  const input = given({ name, props: cli.object('--props'), keyProps: cli.object('--key-props') });
  await withClient(cli, async (client) => {
    const place = await reserveKeyPlace(cli, 'asym', name);
    const answer = await client.createAsymKeyring(input).catch(async (error) => {
      await place.release();
      throw error;
    });
    const { ring } = answer;
    await printThing(cli, answer, [
      ['name', ring.displayName],
      ['id', ring.id],
      ['active key', ring.activeKey],
      ['algorithm', ring.activeAlgorithm],
      ['public key', ring.publicKey],
      ['created', ring.createdAt],
    ]);
    await place.keep(answer.privateKey);
  });
}
