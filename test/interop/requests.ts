// The same requests to OpenBao and to the appliance, with the parts of the answers that programs rely on. Text after a
// `$` stands for a value of an earlier answer.

export interface Step {
  readonly ask: string;
  readonly body?: unknown;
  /** A raw body, sent unchanged. */
  readonly raw?: string;
  readonly type?: string;
  /** Absent: the root token. */
  readonly token?: 'none' | 'wrong';
  /** The name under which `data.ciphertext` or `data.signature` is kept. */
  readonly keep?: string;
}

export interface Told {
  readonly status: number;
  /** Absent if there are none. */
  readonly errors?: readonly string[];
  /** Names of the fields in `data`. */
  readonly data?: readonly string[];
  /** The decrypted plaintext, or the result of verifying. */
  readonly value?: unknown;
}

const plaintext = 'aGVsbG8=';

export const steps: readonly Step[] = [
  { ask: 'GET transit/keys?list=true' },
  { ask: 'GET transit/keys/nope' },
  { ask: 'PUT transit/keys/k', body: {} },
  { ask: 'PUT transit/keys/k', body: {} },
  { ask: 'PUT transit/keys/bad', body: { type: 'nothing' } },
  { ask: 'GET transit/keys/k' },
  { ask: 'GET transit/keys?list=true' },
  { ask: 'PUT transit/encrypt/k', body: { plaintext }, keep: 'one' },
  { ask: 'POST transit/encrypt/k', body: { plaintext: '', key_version: 0 } },
  { ask: 'POST transit/encrypt/k', body: { plaintext, key_version: '0' } },
  { ask: 'POST transit/encrypt/k', body: { plaintext, key_version: '' } },
  { ask: 'POST transit/encrypt/k', body: { plaintext, key_version: 7 } },
  { ask: 'POST transit/encrypt/k', body: { plaintext, key_version: -1 } },
  { ask: 'POST transit/encrypt/k', body: { plaintext: 'aGk' } },
  { ask: 'POST transit/encrypt/k', body: { plaintext: 'aGk=aGk=' } },
  { ask: 'POST transit/encrypt/k', body: { plaintext: 'aG\nk=' } },
  { ask: 'POST transit/encrypt/k', body: { plaintext: '####' } },
  { ask: 'POST transit/encrypt/k', body: { plaintext: 'aGVs####' } },
  { ask: 'POST transit/encrypt/k', body: {} },
  { ask: 'POST transit/encrypt/k', body: { plaintext: null } },
  { ask: 'POST transit/encrypt/k', body: { plaintext, unknown: [1], context: null } },
  { ask: 'POST transit/encrypt/k', body: { plaintext, context: '' } },
  { ask: 'POST transit/encrypt/k', body: { plaintext, context: 'Y3R4' } },
  { ask: 'POST transit/encrypt/k', raw: 'notjson' },
  { ask: 'POST transit/encrypt/k', raw: 'notjson', type: 'application/json' },
  { ask: 'POST transit/encrypt/k', raw: '', type: 'application/x-www-form-urlencoded' },
  { ask: 'POST transit/encrypt/k', raw: '{"plaintext":"aGk="}', type: 'application/x-www-form-urlencoded' },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: '$one' } },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: '$one', associated_data: 'YQ==' } },
  { ask: 'PUT transit/decrypt/k', body: {} },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: 'x' } },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: 'vault:v1' } },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: 'vault:vx:AAAA' } },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: 'vault:v1:####' } },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: 'vault:v1:AAAA' } },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: `vault:v1:${'A'.repeat(44)}` } },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: 'vault:v9:AAAA' } },
  { ask: 'PUT transit/decrypt/nope', body: { ciphertext: '$one' } },
  { ask: 'PUT transit/encrypt/k', body: { plaintext, associated_data: 'YQ==' }, keep: 'bound' },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: '$bound', associated_data: 'YQ==' } },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: '$bound' } },
  { ask: 'PUT transit/encrypt/k', body: { batch_input: [{ plaintext, reference: 'a' }, { plaintext: '' }] } },
  { ask: 'PUT transit/encrypt/k', body: { batch_input: [{ plaintext }, { plaintext: '###' }] } },
  { ask: 'PUT transit/encrypt/k', body: { batch_input: [] } },
  { ask: 'PUT transit/decrypt/k', body: { batch_input: [{ ciphertext: '$one' }] } },
  { ask: 'POST transit/datakey/plaintext/k' },
  { ask: 'POST transit/datakey/plaintext/k', body: { bits: '128' } },
  { ask: 'POST transit/datakey/wrapped/k', body: { bits: 512 } },
  { ask: 'POST transit/datakey/plaintext/k', body: { bits: 7 } },
  { ask: 'POST transit/datakey/plaintext/nope' },
  { ask: 'POST transit/keys/k/rotate' },
  { ask: 'POST transit/rewrap/k', body: { ciphertext: '$one' }, keep: 'two' },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: '$two' } },
  { ask: 'POST transit/rewrap/nope', body: { ciphertext: '$one' } },
  { ask: 'POST transit/keys/k/config', body: { min_decryption_version: 2 } },
  { ask: 'PUT transit/decrypt/k', body: { ciphertext: '$one' } },
  { ask: 'POST transit/keys/k/config', body: { min_decryption_version: 9 } },
  { ask: 'POST transit/keys/nope/config', body: { deletion_allowed: true } },
  { ask: 'POST transit/keys/nope/rotate' },
  { ask: 'PUT transit/keys/e', body: { type: 'ed25519' } },
  { ask: 'GET transit/keys/e' },
  { ask: 'PUT transit/encrypt/e', body: { plaintext } },
  { ask: 'PUT transit/decrypt/e', body: { ciphertext: '$one' } },
  { ask: 'PUT transit/sign/e', body: { input: plaintext }, keep: 'signed' },
  { ask: 'PUT transit/verify/e', body: { input: plaintext, signature: '$signed' } },
  { ask: 'PUT transit/verify/e', body: { input: 'aGVsbG9v', signature: '$signed' } },
  { ask: 'PUT transit/verify/e', body: { input: plaintext, signature: 'x' } },
  { ask: 'PUT transit/verify/e', body: { input: plaintext } },
  { ask: 'PUT transit/sign/k', body: { input: plaintext } },
  { ask: 'PUT transit/sign/nope', body: { input: plaintext } },
  { ask: 'PUT transit/keys/p', body: { type: 'ecdsa-p256' } },
  { ask: 'PUT transit/sign/p/sha2-256', body: { input: plaintext, key_version: '0' }, keep: 'ecdsa' },
  { ask: 'PUT transit/verify/p//sha2-256', body: { input: plaintext, signature: '$ecdsa' } },
  { ask: 'PUT transit/verify/p/sha2-512', body: { input: plaintext, signature: '$ecdsa' } },
  { ask: 'PUT transit/sign/p/nothing', body: { input: plaintext } },
  { ask: 'PUT transit/keys/d', body: { derived: true, type: 'chacha20-poly1305' } },
  { ask: 'PUT transit/encrypt/d', body: { plaintext } },
  { ask: 'PUT transit/encrypt/d', body: { plaintext, context: 'Y3R4' }, keep: 'derived' },
  { ask: 'PUT transit/decrypt/d', body: { ciphertext: '$derived', context: 'Y3R4' } },
  { ask: 'PUT transit/decrypt/d', body: { ciphertext: '$derived', context: 'eHl6' } },
  { ask: 'GET transit/export/encryption-key/k' },
  { ask: 'DELETE transit/keys/k' },
  { ask: 'POST transit/keys/k/config', body: { deletion_allowed: true } },
  { ask: 'DELETE transit/keys/k' },
  { ask: 'DELETE transit/keys/nope' },
  { ask: 'GET transit/keys/k' },
  { ask: 'GET transit/zzz' },
  { ask: 'GET nomount/keys/x' },
  { ask: 'PUT transit/encrypt/e', body: { plaintext }, token: 'wrong' },
  { ask: 'PUT transit/encrypt/e', body: { plaintext }, token: 'none' },
  { ask: 'GET auth/token/lookup-self', token: 'wrong' },
  { ask: 'GET auth/token/lookup-self' },
  { ask: 'PUT auth/token/renew-self', body: { increment: 0 } },
  { ask: 'POST auth/approle/login', body: { role_id: 'a', secret_id: 'b' }, token: 'none' },
  { ask: 'GET sys/health', token: 'none' },
  { ask: 'HEAD sys/health', token: 'none' },
  { ask: 'GET sys/seal-status', token: 'none' },
  { ask: 'PUT transit/keys/listed', body: {} },
  { ask: 'GET transit/keys?list=True' },
  { ask: 'GET transit/keys?list=false' },
  { ask: 'GET transit/keys/listed?list=true' },
  { ask: 'GET transit/encrypt/listed?list=true' },
  { ask: 'POST transit/keys/listed/config', body: { auto_rotate_period: ['24h'] } },
  { ask: 'POST transit/keys/listed/config', body: { deletion_allowed: [true] } },
];

/** Sends all requests in order. `url` ends with `/v1/`. */
export async function askAll(
  url: string,
  token: string,
  fetch: (request: Request) => Promise<Response>,
): Promise<Told[]> {
  const kept = new Map<string, string>();
  const told: Told[] = [];
  for (const step of steps) {
    const [method = '', path = ''] = step.ask.split(' ');
    const sent = { none: undefined, wrong: 'hvs.wrong' };
    const credential = step.token === undefined ? token : sent[step.token];
    const text = step.raw ?? (step.body === undefined ? undefined : JSON.stringify(step.body));
    const body = text?.replace(/"\$(\w+)"/g, (_, name) => JSON.stringify(kept.get(name) ?? ''));
    const request = new Request(`${url}${path}`, {
      method,
      headers: {
        ...(credential !== undefined && { 'X-Vault-Token': credential }),
        ...(step.type !== undefined && { 'Content-Type': step.type }),
      },
      ...(body !== undefined && { body: new TextEncoder().encode(body) }),
    });
    const response = await fetch(request);
    const answer = await response.text();
    const { errors, data } = answer === '' ? {} : JSON.parse(answer);
    const made = data?.ciphertext ?? data?.signature;
    if (step.keep !== undefined) kept.set(step.keep, String(made));
    const value = data?.plaintext !== undefined && path.includes('/decrypt/') ? data.plaintext : data?.valid;
    told.push({
      status: response.status,
      ...(errors && { errors }),
      ...(data && { data: Object.keys(data).sort() }),
      ...(value !== undefined && { value }),
    });
  }
  return told;
}
