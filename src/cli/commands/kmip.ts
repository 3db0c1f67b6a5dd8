// Commands for clients of KMIP, which are API keys that a certificate proves.
import { type CliOf, given } from '../command.ts';
import { withClient } from '../connect.ts';
import type { kmipClient } from '../grammar/kmip.ts';
import { say } from '../io.ts';
import { printThing } from '../output.ts';
import { uidQuery } from './account.ts';
import { filesFor } from './proof-certificate.ts';

const usualDays = 365;

export async function create(cli: CliOf<typeof kmipClient.create>): Promise<void> {
  const accountId = cli.get('--account');
  const named = cli.get('--flag');
  const flags = Object.fromEntries((named.length > 0 ? named : ['kmip.*']).map((flag) => [flag, true]));
  const out = cli.get('--out');
  // Before anything is made: a key that cannot be saved is useless.
  const files = await filesFor(cli, out);
  await withClient(cli, async (client) => {
    const name = cli.get('<NAME>');
    const input = given({ accountId, ...uidQuery(accountId), flags, name, secret: false });
    try {
      const { keyid } = await client.createApiKey(input);
      const days = cli.get('--days') ?? usualDays;
      const made = await client.addProof({ keyid, kind: 'certificate', issue: true, days });
      await files.keep(made);
      const { id: proof, fingerprint = '', notAfter = '' } = made;
      await printThing(cli, { keyid, proof, fingerprint, notAfter }, [
        ['key id', keyid],
        ['proof', proof],
        ['fingerprint', fingerprint],
        ['valid until', notAfter],
      ]);
    } catch (error) {
      await files.discard();
      throw error;
    }
    await say(cli.io, `client.crt, client.key and ca.crt are in ${out}`);
  });
}
