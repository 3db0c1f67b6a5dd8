// Logins of Vault's clients with signed tokens: an issuer of this test, and an API key without a secret that trusts it.
import { generateKeyPairSync, sign } from 'node:crypto';
import { statSync } from 'node:fs';
import { type Desk, expect } from '../desk.ts';

interface Workload {
  /** The API key's name, which logins call their role. */
  readonly role: string;
  /** A token for the audience `kms`, of a service account of Kubernetes. */
  token(seconds?: number): string;
}

/** An API key that may use the managed key of its name, and is proved by the issuer's tokens alone. */
export async function workload(desk: Desk, role: string): Promise<Workload> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuer = 'https://kubernetes.default.svc';
  const subject = `system:serviceaccount:shop:${role}`;
  const keys = desk.write(`${role}.jwks`, JSON.stringify(publicKey.export({ format: 'jwk' })));
  await desk.kms('key', 'create', role);
  await desk.kms('account', 'create', role);
  const made = ['--account', role, '--name', role, '--without-secret', '--flag', `key.${role}.*`, '--json'];
  const { keyid } = JSON.parse(await desk.kms('apikey', 'create', ...made));
  const trust = ['--issuer', issuer, '--audience', 'kms', '--subject', subject, '--jwks-file', keys];
  await desk.kms('apikey', 'proof', 'add', keyid, 'jwt', ...trust);
  return {
    role,
    token(seconds = 600) {
      const iat = Math.floor(Date.now() / 1000);
      const claims = { iss: issuer, aud: ['kms'], sub: subject, iat, nbf: iat, exp: iat + seconds };
      const parts = [{ alg: 'ES256', typ: 'JWT' }, claims];
      const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
      const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
      return `${signed}.${signature.toString('base64url')}`;
    },
  };
}

/** The command-line client logs in by both methods, works, looks its token up, renews it and gives it back. */
export async function loggedIn(desk: Desk, bao: string): Promise<void> {
  const { role, token } = await workload(desk, 'bao-login');
  const file = desk.write('bao-login.token', token());
  for (const method of ['jwt', 'kubernetes', 'jwt-ci']) {
    const login = ['write', '-format=json', `auth/${method}/login`, `role=${role}`, `jwt=@${file}`];
    const { auth } = JSON.parse((await desk.run(bao, login, { env: desk.vault('') })).stdout);
    const env = desk.vault(auth.client_token);
    const say = async (...args: string[]) => (await desk.run(bao, args, { env })).stdout;
    expect(await say('write', '-field=ciphertext', `transit/encrypt/${role}`, 'plaintext=aGVsbG8='), /^vault:v1:/);
    expect(await say('token', 'lookup'), /service_account_name:bao-login/);
    expect(await say('token', 'renew', '-increment=120s'), /token_duration +(?:2m|1m5\ds)/);
    expect(await say('token', 'renew'), /token_renewable +true/);
    await say('token', 'revoke', '-self');
    const ended = await desk.refused(bao, ['token', 'lookup'], { env });
    expect(ended.stderr, /Code: 403[\s\S]*permission denied/);
  }
  const fails = async (words: readonly string[], said: RegExp) =>
    expect((await desk.refused(bao, ['write', ...words], { env: desk.vault('') })).stderr, said);
  await fails(['auth/jwt/login', `role=${role}`, `jwt=${token(-100)}`], /token is expired/);
  await fails(['auth/jwt/login', 'role=nobody', `jwt=${token()}`], /role "nobody" could not be found/);
  await fails(['auth/kubernetes/login', `role=${role}`, `jwt=${token()}x`], /Code: 403[\s\S]*permission denied/);
}

/** An agent logs in with the token in a file, hands its own token out in another, and renews it. */
export async function withAgent(desk: Desk, bao: string, method: 'jwt' | 'kubernetes'): Promise<void> {
  const { role, token } = await workload(desk, `agent-${method}`);
  const file = desk.write(`${role}.token`, token());
  const sink = desk.path(`${role}.sink`);
  const read = method === 'jwt' ? `path = "${file}"\n      remove_jwt_after_reading = false` : `token_path = "${file}"`;
  const config = desk.write(
    `${role}.hcl`,
    `vault {
  address = "${desk.address}"
}
auto_auth {
  method "${method}" {
    config = {
      role = "${role}"
      ${read}
    }
  }
  sink "file" {
    config = {
      path = "${sink}"
    }
  }
}
`,
  );
  const agent = desk.start(bao, ['agent', `-config=${config}`, '-log-level=debug']);
  try {
    await agent.until('the agent has logged in', async () => statSync(sink).size > 0);
    const { stdout: held } = await desk.run('cat', [sink]);
    const env = desk.vault(held);
    const args = ['write', '-field=ciphertext', `transit/encrypt/${role}`, 'plaintext=aGVsbG8='];
    expect((await desk.run(bao, args, { env })).stdout, /^vault:v1:/);
    await agent.until('the agent has renewed its token', async () => /renewed auth token/.test(agent.output()));
  } finally {
    await agent.end();
  }
}
