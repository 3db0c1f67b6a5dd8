// A client of AWS's token service.
import type { AnyJson, Appliance } from './appliance.ts';
import { type AccessKey, around, formType, post, signed } from './aws-client.ts';
import { TokenIssuer, trustIssuer } from './token-issuer.ts';

/** Logs in with a signed token, as a pod does. */
export async function assume(a: Appliance, issuer: TokenIssuer, account: string, role: string, more: AnyJson = {}) {
  const form = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: `arn:aws:iam::${account}:role/${role}`,
    RoleSessionName: 'pod-7',
    WebIdentityToken: await issuer.token(),
    ...more,
  });
  const { status, text } = await post(a, {
    headers: { host: 'kms.test', 'content-type': formType },
    body: form.toString(),
  });
  const of = (name: string): string => new RegExp(`<${name}>([^<]+)</${name}>`).exec(text)?.[1] ?? '';
  const key = { id: of('AccessKeyId'), secret: of('SecretAccessKey'), token: of('SessionToken') };
  return { status, text, key, code: of('Code') };
}

/** Asks who has an access key. */
export async function identityOf(a: Appliance, key: AccessKey) {
  const body = 'Action=GetCallerIdentity&Version=2011-06-15';
  return post(a, signed(a, key, { 'content-type': formType }, body, { service: 'sts' }));
}

/** An appliance, an access key, and an issuer whose tokens its API key trusts. */
export async function withSession(...flags: string[]) {
  const { a, key, apiKey } = await around(...flags);
  const issuer = await TokenIssuer.make(() => a.world.now());
  await trustIssuer(a, apiKey.keyid, issuer);
  const { text } = await identityOf(a, key);
  const account = /<Account>(\d+)</.exec(text)?.[1] ?? '';
  return { a, key, apiKey, issuer, account };
}
