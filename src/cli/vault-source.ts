// VaultSource is a transit engine of a Vault or OpenBao that keys are taken from. Anything may answer at its address:
// answers are bounded, checked, and never followed elsewhere.
import { randomBytes } from 'node:crypto';
import { boundedJson, longestAnswer } from '../client/bounded.ts';
import { KmsError } from '../errors.ts';
import { isJsonObject, type JsonObject } from '../model/json.ts';
import { inWords, networkFetch } from './fetch.ts';
import type { Authorities } from './target.ts';

interface SourceOptions {
  /** Address without a trailing slash. */
  readonly address: string;
  readonly token: string;
  /** Path of the transit engine, without slashes at its ends. */
  readonly mount: string;
  readonly namespace?: string | undefined;
  readonly authorities?: Authorities | undefined;
  readonly signal: AbortSignal;
}

/** A transit key as the source describes it. */
export interface SourceKey {
  readonly name: string;
  /** The source's name of the type. */
  readonly type: string;
  /** ML-DSA only. */
  readonly parameterSet: string | undefined;
  readonly latestVersion: number;
  /** The oldest version that was not trimmed; 0 if none ever was. */
  readonly minAvailableVersion: number;
  readonly minDecryptVersion: number;
  readonly minEncryptVersion: number;
  readonly isDerived: boolean;
  readonly isConvergent: boolean;
  readonly isExportable: boolean;
  readonly isDeletionAllowed: boolean;
  readonly isSoftDeleted: boolean;
  /** Seconds; 0 for never. */
  readonly rotateAfter: number;
}

export interface VaultSource {
  readonly address: string;
  /** Names of all keys. */
  listKeys(): Promise<readonly string[]>;
  /** Undefined if there is none. */
  readKey(name: string): Promise<SourceKey | undefined>;
  /** Runs `use` with the name of a key that has this public RSA key alone, and deletes that key afterwards. */
  withWrappingKey<T>(
    publicKey: string,
    use: (to: string) => Promise<T>,
    warn: (text: string) => Promise<void>,
  ): Promise<T>;
  /** All versions of the key from the first one, each wrapped to the public key of `to`, base64. */
  exportKey(name: string, to: string): Promise<readonly string[]>;
  setMinDecryptVersion(name: string, version: number): Promise<void>;
}

const speaker = { name: 'Vault or OpenBao', hint: 'is it the address of a Vault or OpenBao?' };
/** Keys that are looked at; more have to come in parts, by --prefix. */
export const mostKeys = 10_000;
const temporaryPrefix = 'kms-import-';
/** Milliseconds for what has to be tidied up, even after an interruption. */
const tidyingTime = 10_000;
/** Characters of a message from the source. */
const longestMessage = 500;

/** The engine's own rule for names; it also keeps them from changing the path. */
export function isSourceName(name: string): boolean {
  return name.length <= 256 && /^\w(?:[\w.-]*\w)?$/.test(name);
}

/** Whether an import left this key behind: it holds no secret. */
export function isTemporary(name: string): boolean {
  return name.startsWith(temporaryPrefix);
}

interface Ask {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly body?: object;
  readonly signal?: AbortSignal;
}

export function vaultSource(options: SourceOptions): VaultSource {
  const { address } = options;
  const ask = asker(options);

  async function readKey(name: string): Promise<SourceKey | undefined> {
    const answer = await ask(`keys/${name}`);
    return answer && sourceKey(name, answer, address);
  }

  async function remove(name: string): Promise<void> {
    const signal = AbortSignal.timeout(tidyingTime);
    await ask(`keys/${name}/config`, { method: 'POST', body: { deletion_allowed: true }, signal });
    await ask(`keys/${name}`, { method: 'DELETE', signal });
  }

  return {
    address,
    readKey,
    async listKeys() {
      const { keys = [] } = (await ask('keys?list=true')) ?? {};
      if (!Array.isArray(keys) || !keys.every((name) => typeof name === 'string')) throw notSource(address);
      return keys;
    },
    async withWrappingKey(publicKey, use, warn) {
      const name = `${temporaryPrefix}${randomBytes(6).toString('hex')}`;
      try {
        await ask(`keys/${name}/import`, { method: 'POST', body: { type: 'rsa-4096', public_key: publicKey } });
        return await use(name);
      } finally {
        await remove(name).catch(async ({ message }: Error) => {
          await warn(
            `the key ${name} could not be deleted at ${address}: ${message}; it holds no secret, delete it there`,
          );
        });
      }
    },
    async exportKey(name, to) {
      const answer = await ask(`byok-export/${to}/${name}`);
      if (!answer || !isJsonObject(answer.keys)) throw notSource(address);
      return inOrder(answer.keys, name, address);
    },
    async setMinDecryptVersion(name, version) {
      const signal = AbortSignal.timeout(tidyingTime);
      await ask(`keys/${name}/config`, { method: 'POST', body: { min_decryption_version: version }, signal });
    },
  };
}

/** Sends a request to the engine; the answer is its `data`, or undefined if there is nothing. */
function asker({ address, token, mount, namespace, authorities, signal: stop }: SourceOptions) {
  const send = networkFetch(address, authorities, { caOption: '--ca FILE' });
  const base = `${address}/v1/${mount.split('/').map(encodeURIComponent).join('/')}`;
  const headers = {
    'X-Vault-Token': token,
    'X-Vault-Request': 'true',
    ...(namespace !== undefined && { 'X-Vault-Namespace': namespace }),
  };
  return async (path: string, { method = 'GET', body, signal = stop }: Ask = {}): Promise<JsonObject | undefined> => {
    const request = new Request(`${base}/${path}`, {
      method,
      headers,
      redirect: 'manual',
      signal,
      body: body ? JSON.stringify(body) : null,
    });
    let response: Response;
    let answer: unknown;
    try {
      response = await send(request);
      answer = await boundedJson(response, longestAnswer, address, speaker);
    } catch (error) {
      throw notReached(error, address, signal);
    }
    if (response.status === 204) return undefined;
    if (response.status !== 200) return nothingOr(response, answer, address);
    if (method !== 'GET') return undefined;
    if (!isJsonObject(answer) || !isJsonObject(answer.data)) throw notSource(address);
    return answer.data;
  };
}

/** Undefined for an answer that says that there is nothing, which is 404 without a reason. Throws for all others. */
function nothingOr(response: Response, answer: unknown, address: string): undefined {
  const { status } = response;
  if (status >= 300 && status < 400) {
    const to = (response.headers.get('location') ?? 'another address').slice(0, longestMessage);
    throw new KmsError('refused', `${address} redirects to ${to}`, {
      hint: 'use the address that the active server itself has',
    });
  }
  const errors = isJsonObject(answer) ? answer.errors : undefined;
  if (!Array.isArray(errors)) throw notSource(address);
  if (status === 404 && errors.length === 0) return undefined;
  const said = errors.filter((each) => typeof each === 'string').join('; ');
  const message = said.replace(/\s+/g, ' ').trim().slice(0, longestMessage).toWellFormed();
  const hint = status === 403 ? 'see that the token is right, and which paths its policy needs: `kms help vault`' : '';
  throw new KmsError(
    status === 403 ? 'forbidden' : 'refused',
    `${address} answered ${status}: ${message || 'no reason'}`,
    {
      hint: hint || 'see the mount, the namespace and the state of that server',
    },
  );
}

function notReached(error: unknown, address: string, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason instanceof Error ? signal.reason : error;
  if (error instanceof KmsError) {
    // Some hints are for the address of an appliance.
    const hint = error.hint?.includes('kms appliance') ? speaker.hint : error.hint;
    return new KmsError(error.code, error.message, { hint, cause: error });
  }
  const cause = inWords(error);
  const reason =
    cause instanceof Error && cause.cause instanceof Error ? cause.cause.message : String(Object(cause).message);
  return new KmsError('unavailable', `cannot reach ${address}: ${reason}`, {
    hint: 'see that the address is right, and that a Vault or OpenBao is served there',
    cause,
  });
}

function notSource(address: string): KmsError {
  return new KmsError('refused', `expected an answer of a transit engine from ${address}, got something else`, {
    hint: speaker.hint,
  });
}

function sourceKey(name: string, data: JsonObject, address: string): SourceKey {
  const flag = (field: string): boolean => {
    const value = data[field] ?? false;
    if (typeof value === 'boolean') return value;
    throw notSource(address);
  };
  const count = (field: string): number => {
    const value = data[field] ?? 0;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
    throw notSource(address);
  };
  const { type, parameter_set: parameterSet } = data;
  if (typeof type !== 'string' || count('latest_version') < 1) throw notSource(address);
  return {
    name,
    type: type.slice(0, 100),
    parameterSet: typeof parameterSet === 'string' ? parameterSet : undefined,
    latestVersion: count('latest_version'),
    minAvailableVersion: count('min_available_version'),
    minDecryptVersion: Math.max(1, count('min_decryption_version')),
    minEncryptVersion: count('min_encryption_version'),
    isDerived: flag('derived'),
    isConvergent: flag('convergent_encryption'),
    isExportable: flag('exportable'),
    isDeletionAllowed: flag('deletion_allowed'),
    isSoftDeleted: flag('soft_deleted'),
    rotateAfter: count('auto_rotate_period'),
  };
}

/** The wrapped versions from the first one on. Throws `refused` if one is missing, since numbers must agree. */
function inOrder(keys: JsonObject, name: string, address: string): readonly string[] {
  const wrapped = Object.keys(keys).map((_, index) => keys[index + 1]);
  if (wrapped.length === 0) {
    throw new KmsError('refused', `the source has no private key of ${name}`, {
      hint: 'bring its public key with `kms key import --public-key`',
    });
  }
  return wrapped.map((each, index) => {
    if (typeof each === 'string') return each;
    if (each !== undefined) throw notSource(address);
    throw new KmsError('refused', `the source does not export version ${index + 1} of ${name}`);
  });
}
