// `kms import vault` from a real OpenBao: every type that can come, with several versions and a token that may do no
// more than the guide says.
import { type Desk, expect } from '../desk.ts';

/** The policy of docs/guide-vault.md. */
const policy = `path "transit/keys" {
  capabilities = ["list"]
}
path "transit/keys/+" {
  capabilities = ["read"]
}
path "transit/keys/+/config" {
  capabilities = ["update"]
}
path "transit/keys/kms-import-*" {
  capabilities = ["create", "update", "delete"]
}
path "transit/byok-export/kms-import-*" {
  capabilities = ["read"]
}
`;

const plaintext = 'plaintext=aGVsbG8=';
const bound = { context: 'Y29udGV4dA==', associated_data: 'Ym91bmQ=' };

export interface Bao {
  readonly address: string;
  /** Runs its client with the root token. */
  there(...args: string[]): Promise<string>;
}

/** Moves all keys, and tries on this side what was made on that one. */
export async function takenOver(desk: Desk, { address, there }: Bao): Promise<void> {
  const samples: string[] = [];
  const ciphers = ['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305', 'rsa-2048', 'rsa-3072', 'rsa-4096'];
  const signers = ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519'];
  const sealed = async (key: string, ...more: string[]): Promise<string> =>
    (await there('write', '-field=ciphertext', `transit/encrypt/${key}`, plaintext, ...more)).trim();
  const rotate = (key: string) => there('write', '-f', `transit/keys/${key}/rotate`);
  for (const type of ciphers) {
    await there('write', `transit/keys/to-${type}`, `type=${type}`, 'exportable=true');
    for (const _ of [1, 2, 3]) {
      samples.push(`to-${type} ${await sealed(`to-${type}`)}`);
      await rotate(`to-${type}`);
    }
    if (type.startsWith('rsa-')) continue;
    const { associated_data } = bound;
    const ciphertext = await sealed(`to-${type}`, `associated_data=${associated_data}`, 'key_version=2');
    samples.push(`to-${type} ${ciphertext} associated_data=${associated_data}`);
    await there('write', `transit/keys/derived-${type}`, `type=${type}`, 'exportable=true', 'derived=true');
    for (const _ of [1, 2]) {
      const made = await sealed(`derived-${type}`, ...Object.entries(bound).map(([name, value]) => `${name}=${value}`));
      samples.push(`derived-${type} ${made} context=${bound.context} associated_data=${associated_data}`);
      await rotate(`derived-${type}`);
    }
  }
  const signatures = new Map<string, string>();
  for (const type of signers) {
    await there('write', `transit/keys/to-${type}`, `type=${type}`, 'exportable=true');
    const signature = await there('write', '-field=signature', `transit/sign/to-${type}`, 'input=aGVsbG8=');
    signatures.set(`to-${type}`, signature.trim());
    await rotate(`to-${type}`);
  }
  await there('write', 'transit/keys/to-hmac', 'type=hmac', 'key_size=32', 'exportable=true');
  const mac = (await there('write', '-field=hmac', 'transit/hmac/to-hmac', 'input=aGVsbG8=')).trim();
  await there('write', '-f', 'transit/keys/kept-there');
  await there('write', 'transit/keys/old-there', 'exportable=true');
  const old = await sealed('old-there');
  await rotate('old-there');
  const options = ['min_decryption_version=2', 'auto_rotate_period=720h', 'deletion_allowed=true'];
  await there('write', 'transit/keys/old-there/config', ...options);

  desk.write('import.hcl', policy);
  await there('policy', 'write', 'kms-import', desk.path('import.hcl'));
  desk.write('import.token', await there('token', 'create', '-policy=kms-import', '-field=token'));
  desk.write('samples.txt', `${samples.join('\n')}\n`);
  const from = ['import', 'vault', '--address', address, '--token-file', desk.path('import.token')];
  const encrypts = ciphers.filter((type) => type.startsWith('rsa-')).flatMap((type) => ['--encrypts', `to-${type}`]);
  const all = [...from, ...encrypts, '--verify', desk.path('samples.txt'), '--lower-min-decryption', '--json'];
  const { keys, samples: tried } = JSON.parse(await desk.kms(...all, '--yes'));
  const missing = keys.filter(({ result }: { result: string }) => result !== 'imported');
  expect(
    JSON.stringify(missing),
    /^\[\{"name":"kept-there",[^{]*"result":"unsupported","note":"not exportable: [^{]*\}\]$/,
  );
  if (tried.length !== samples.length) throw new Error('not all samples were tried');
  expect(await there('list', 'transit/keys'), /^(?![\s\S]*kms-import-)/);
  expect(await there('read', '-field=min_decryption_version', 'transit/keys/old-there'), /^2$/);

  const { key } = JSON.parse(await desk.kms('key', 'show', 'old-there', '--json'));
  const kept = [key.latestVersion, key.minDecryptVersion, key.rotateAfter, key.deletionAllowed];
  expect(JSON.stringify(kept), /^\[2,2,2592000,true\]$/);
  await desk.kms('key', 'config', 'old-there', '--min-decrypt-version', '1');
  desk.write('old.vault', old);
  expect(await desk.kms('key', 'decrypt', 'old-there', desk.path('old.vault')), /^hello$/);
  desk.write('hello', 'hello');
  for (const [name, signature] of signatures) {
    // The source hashes with SHA-256, whatever the curve.
    const hash = name.includes('ecdsa') ? ['--hash', 'sha2-256'] : [];
    expect(await desk.kms('key', 'verify', name, desk.path('hello'), '--signature', signature, ...hash), /^valid$/m);
  }
  expect(await desk.kms('key', 'verify', 'to-hmac', desk.path('hello'), '--mac', mac), /^valid$/m);
}
