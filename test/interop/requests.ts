// Sends the same requests to OpenBao and to the appliance, and keeps the parts of the answers that programs rely on.
import { constants, createCipheriv, publicEncrypt } from 'node:crypto';
import { commonSteps } from './common-steps.ts';
import { kvSteps } from './kv-steps.ts';
import { paritySteps } from './parity-steps.ts';
import type { Step } from './steps.ts';

export interface Told {
  readonly status: number;
  /** Absent if there are none. */
  readonly errors?: readonly string[];
  /** Names of the fields in `data`. */
  readonly data?: readonly string[];
  /** The plaintext, the hash, the result of verifying, what keys are called, or what became of each of a batch. */
  readonly value?: unknown;
}

export const steps: readonly Step[] = [...commonSteps, ...paritySteps, ...kvSteps];

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
    if (step.wraps !== undefined) kept.set('wrapped', wrapped(step.wraps, kept.get('wrapping') ?? ''));
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
    const made = data?.ciphertext ?? data?.signature ?? data?.hmac ?? data?.public_key;
    if (step.keep !== undefined) kept.set(step.keep, String(made));
    const value = comparedOf(path, data);
    told.push({
      status: response.status,
      ...(errors && { errors }),
      ...(data && { data: Object.keys(data).sort() }),
      ...(value !== undefined && { value }),
    });
  }
  return told;
}

interface Data {
  readonly [name: string]: unknown;
}

const deterministic = [
  ...['type', 'latest_version', 'min_available_version', 'soft_deleted', 'imported_key', 'exportable'],
  ...['supports_encryption', 'supports_decryption', 'supports_signing', 'key_size'],
];

/** The part of an answer that must be the same in both. */
function comparedOf(path: string, data: Data | undefined): unknown {
  if (!data) return undefined;
  if (/^(?:secret|sys\/(?:internal\/ui\/)?mounts)\//.test(path)) return withoutTimes(data);
  if (path.includes('/decrypt/')) return data.plaintext;
  if (data.valid !== undefined || data.sum !== undefined) return data.valid ?? data.sum;
  if (Array.isArray(data.batch_results) && !path.includes('/encrypt/') && !path.includes('/decrypt/')) {
    return data.batch_results.map(({ valid = false, error, reference }: Data) => [valid, error, reference]);
  }
  if (/^transit\/export\/|byok-export/.test(path)) return formsOf(data.keys);
  if (!/^transit\/keys\//.test(path)) return undefined;
  const publicKeys = data.keys === undefined ? undefined : formsOf(data.keys);
  return [...deterministic.map((name) => data[name]), data.type === 'hmac' ? undefined : publicKeys];
}

const ofMounts = ['accessor', 'description', 'running_plugin_version', 'uuid', 'default_lease_ttl', 'max_lease_ttl'];
/** Changes of metadata are not counted here. */
const unequal = ['current_metadata_version', 'metadata_cas_required', ...ofMounts];

/** Values of the KV engine, and facts of mounts, without what no two servers have alike. */
function withoutTimes(data: Data): unknown {
  const text = JSON.stringify(data, (name, value: unknown) => {
    if (unequal.includes(name)) return undefined;
    if (name.endsWith('_time')) return value !== '';
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;
  });
  return JSON.parse(text);
}

/** The forms of keys: of PEM the label, of base64 the length. */
function formsOf(keys: unknown): unknown {
  return Object.entries(keys as object).map(([version, key]) => [version, formOf(key)]);
}

function formOf(key: unknown): unknown {
  if (typeof key === 'object') {
    const { name, public_key: text } = key as Data;
    return [name, formOf(text)];
  }
  if (typeof key !== 'string') return typeof key;
  const label = /^-----BEGIN ([A-Z ]+)-----/.exec(key)?.[1];
  // DER of RSA differs by some bytes in length.
  const { length } = Buffer.from(key, 'base64');
  return label === undefined ? (length > 1000 ? 'long' : length) : [label, key.endsWith('\n')];
}

/** A key under a new AES key with AES-KWP, after that key under RSA-OAEP. */
function wrapped(hex: string, publicKey: string): string {
  const kek = Buffer.alloc(32, 1);
  const first = publicEncrypt({ key: publicKey, oaepHash: 'sha256', padding: constants.RSA_PKCS1_OAEP_PADDING }, kek);
  const cipher = createCipheriv('id-aes256-wrap-pad', kek, Buffer.from('a65959a6', 'hex'));
  return Buffer.concat([first, cipher.update(Buffer.from(hex, 'hex')), cipher.final()]).toString('base64');
}
