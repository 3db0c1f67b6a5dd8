// Records of what programs did by proofs of API keys, as the command line shows them: by which proof, as whom, and which
// check refused a token.
import assert from 'node:assert/strict';
import test from 'node:test';
import { TokenIssuer, trustIssuer } from '../support/token-issuer.ts';
import { servedDesk } from './served.ts';

interface Found {
  readonly data: readonly { readonly id: string }[];
}

test('what was done to a proof, and by one, is shown', async () => {
  await using d = await servedDesk();
  const { appliance: a } = d;
  const issuer = await TokenIssuer.make(() => a.world.now());
  const { keyid } = await a.keyWith('keyring.list');
  const proof = await trustIssuer(a, keyid, issuer);
  const logIn = async (claims: object) =>
    a.call('POST', '/auth/workload/login', { token: await issuer.token({ ...claims }), role: keyid }, { key: null });
  const { accessToken } = (await logIn({})).body;
  await a.call('GET', '/ks/keyrings', undefined, { key: accessToken });
  await logIn({ aud: 'vault' });
  const shown = async (filters: string): Promise<string> => {
    const [record = assert.fail(filters)] = (await d.json<Found>(`activity search ${filters} --json`)).data;
    return (await d.kms(`activity show ${record.id}`)).stdout;
  };

  const added = await shown(`--object ${keyid} --action apikey.update`);
  assert.match(added, new RegExp(`^along with +proof jwt \\(${proof.id}\\)$`, 'm'));
  assert.match(added, /^the proof was +added$/m);
  const listed = await shown('--action keyring.list');
  assert.match(listed, new RegExp(`^by +${keyid}\\nproved by +build\\nproof +${proof.id}$`, 'm'));
  const refused = await shown('--action session.create --valid false');
  assert.match(refused, /^refused by +the check audience$/m);
  assert.doesNotMatch(refused, /proved by/);
  const table = (await d.kms('activity search --action session.create --valid true')).stdout;
  assert.match(table, / program build /);
});
