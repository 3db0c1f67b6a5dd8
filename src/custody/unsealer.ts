// Unsealing step by step: shares from several people add up, a passphrase or a key opens at once. Inputs are kept in
// memory only, until they open the seal, turn out wrong, or are reset. The seal of a backup or shipped copy is opened
// in the same way, but commands that it names are not run: it comes from elsewhere.
import type { UnsealStep } from '../api/system.ts';
import { Backoff, type BackoffKeys } from '../core/backoff.ts';
import type { World } from '../core/context.ts';
import type { Origin } from '../core/credential.ts';
import { utf8 } from '../crypto/bytes.ts';
import { combineShares } from '../crypto/shamir.ts';
import { KmsError } from '../errors.ts';
import { networksOf } from '../model/addresses.ts';
import { parseSecret, parseShare, type Share } from '../seal/custodian-secret.ts';
import { type Slot, slotIdOf } from '../seal/slot.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import { type KeySources, StaysSealed } from './key-sources.ts';
import { expectedHeader, type OpenedSeal, openWith, openWithPassphrase, type SealBytes, unlockSeal } from './unlock.ts';

interface UnsealerOptions {
  /** The data directory. */
  readonly data: string;
  readonly sources: KeySources;
  read(): Promise<SealBytes>;
}

export class Unsealer {
  readonly #options: UnsealerOptions;
  /** Keyed by the slot that they open, then by share number. */
  readonly #shares = new Map<string, Map<number, Share>>();
  #slots: readonly Slot[] = [];

  constructor(options: UnsealerOptions) {
    this.#options = options;
  }

  /** Reads the seal without opening it; call this whenever it may have changed. */
  async look(): Promise<void> {
    await this.#read();
  }

  get slots(): readonly Slot[] {
    return this.#slots;
  }

  /** Progress of the split with the most shares. Undefined if shares open nothing. */
  get progress(): { readonly threshold: number; readonly progress: number } | undefined {
    const splits = this.#slots
      .filter(({ kind }) => kind === 'shares')
      .map((slot) => ({ threshold: thresholdOf(slot), progress: this.#shares.get(slot.id)?.size ?? 0 }));
    return splits.sort((a, b) => b.progress - a.progress)[0];
  }

  /**
   * Takes one step. Returns the opened seal, or undefined if more shares are needed. Throws for a step that does not
   * help. A caller `from` elsewhere than the machine does not learn which shares would fit.
   */
  async take(step: UnsealStep, { local }: Origin = { local: true }): Promise<OpenedSeal | undefined> {
    if (step.reset) {
      this.forget();
      return undefined;
    }
    const from = await this.#read();
    if (step.share !== undefined) return this.#takeShare(from, step.share, local === true);
    if (step.passphrase !== undefined)
      return openWithPassphrase(from, this.#slots, step.passphrase, this.#options.sources.signal);
    if (step.key !== undefined) {
      return openWith(from, this.#slots, parseSecret(utf8(step.key), 'the key'), 'wrong key');
    }
    return this.#retry(from);
  }

  /** Errors about a missing key are worded for remote callers too. */
  async #retry(from: SealBytes): Promise<OpenedSeal> {
    try {
      return await unlockSeal(from, this.#options.data, this.#options.sources);
    } catch (error) {
      if (!(error instanceof KmsError) || error.code !== 'sealed' || error instanceof StaysSealed) throw error;
      throw new StaysSealed(error.message, error.hint === undefined ? {} : { hint: error.hint });
    }
  }

  forget(): void {
    for (const shares of this.#shares.values()) for (const { bytes } of shares.values()) bytes.fill(0);
    this.#shares.clear();
  }

  #takeShare(from: SealBytes, text: string, isLocal: boolean): OpenedSeal | undefined {
    const share = parseShare(text);
    const splits = this.#slots.filter(({ kind }) => kind === 'shares');
    const slot = splits.find(({ params }) => params.set === share.set);
    if (!slot || thresholdOf(slot) !== share.threshold) {
      // Only a local caller is told the set's id: a remote one could forge a share with it, and one forged share
      // discards all that were given.
      const sets = isLocal ? `the set ${splits.map(({ params }) => params.set).join(' or ')}` : 'another set';
      const needs = splits.length === 0 ? 'no shares open it' : `needs one of ${sets}, got one of ${share.set}`;
      throw new KmsError('refused', `that share does not belong to this appliance: ${needs}`);
    }
    const given = this.#shares.get(slot.id) ?? new Map<number, Share>();
    this.#shares.set(slot.id, given.set(share.index, share));
    if (given.size < thresholdOf(slot)) return undefined;
    const secret = combineShares([...given.values()]);
    this.forget();
    if (slotIdOf(secret) !== slot.id) {
      secret.fill(0);
      throw new KmsError('refused', 'the shares do not fit together: at least one of them was made up', {
        hint: 'all of them were forgotten; enter them again, each from where it was kept',
      });
    }
    return openWith(from, this.#slots, secret, 'wrong shares');
  }

  async #read(): Promise<SealBytes> {
    const from = await this.#options.read();
    this.#slots = expectedHeader(from, this.#options.sources.appliance).slots;
    return from;
  }
}

function thresholdOf({ params: { threshold } }: Slot): number {
  if (typeof threshold !== 'number' || threshold < 2 || threshold > 255) {
    throw new KmsError('corrupt', 'the seal file does not say how many shares it takes');
  }
  return threshold;
}

export interface KeyOptions {
  /** The data directory beside which the key file may be. */
  readonly data: string;
  readonly keys: KeySources;
  /** Asks for one share after another if shares open the seal; undefined: no more. */
  readonly share?: ((given: number, needed: number) => Promise<string | undefined>) | undefined;
}

/** Throws `sealed` if no key is found, `refused` for a wrong one: "needs …, got …". */
export async function unseal(bytes: Uint8Array, name: string, { data, keys, share }: KeyOptions): Promise<OpenedSeal> {
  const sources = { ...keys, commands: undefined };
  const unsealer = new Unsealer({ data, sources, read: async () => ({ bytes, name }) });
  const found = await unsealer.take({}).catch((error: unknown) => {
    if (error instanceof StaysSealed) return error;
    throw error;
  });
  if (found && !(found instanceof StaysSealed)) return found;
  for (let { progress } = unsealer; progress && share; { progress } = unsealer) {
    const text = await share(progress.progress, progress.threshold);
    if (text === undefined) break;
    const opened = await unsealer.take({ share: text });
    if (opened) return opened;
  }
  const { progress: given = 0, threshold } = unsealer.progress ?? {};
  unsealer.forget();
  if (given > 0) throw sealed(`${name}: ${given} of ${threshold} shares were given`, 'give all of them at once');
  // The error of a wrong key is more useful than the list of other ways.
  if (found?.cause instanceof KmsError) throw found.cause;
  throw sealed(`${name}: ${found?.reason}`, ways);
}

const ways =
  'give a key file or a recovery kit with --key-file, the key in KMS_MASTER_KEY, the passphrase with --passphrase-file, or shares on stdin, one a line';

function sealed(message: string, hint: string): KmsError {
  return new KmsError('sealed', message, { hint });
}

const thresholds = { address: 5, site: 50 } as const;

/** Passphrases from the network that may be tried or queued. */
const most = 16;

export class UnsealBackoff {
  readonly #backoff: Backoff<keyof typeof thresholds>;
  /** Networks of addresses with a passphrase being tried or queued. */
  readonly #slow = new Set<string>();
  readonly #queue = new SerialQueue();

  /** `nodes`: the number of nodes on which an attacker could try the same. */
  constructor({ elapsed, random }: Pick<World, 'elapsed' | 'random'>, nodes?: () => number) {
    this.#backoff = new Backoff({ thresholds, what: 'tries', elapsed, random, waiting: most, sharers: nodes });
  }

  /** Why any try from this origin is refused now; undefined if it is allowed. Changes nothing. */
  refusal(from: Origin): KmsError | undefined {
    return from.local ? undefined : this.#backoff.refusal(keysOf(from));
  }

  /**
   * Runs a try from the network. One that neither opens nor fails, such as one of several shares, returns undefined and
   * changes no count. Throws `rate-limited`.
   */
  async run<R>(from: Origin, isSlow: boolean, attempt: () => Promise<R | undefined>): Promise<R | undefined> {
    const turn = await this.#backoff.begin(keysOf(from));
    try {
      const result = await (isSlow ? this.#oneAtATime(from, attempt) : attempt());
      if (result !== undefined) turn.succeeded();
      return result;
    } catch (error) {
      if (error instanceof KmsError && ['refused', 'invalid', 'corrupt'].includes(error.code)) turn.failed();
      throw error;
    } finally {
      turn.abandoned();
    }
  }

  async #oneAtATime<R>({ remoteAddress = '' }: Origin, attempt: () => Promise<R>): Promise<R> {
    const { host, site } = networksOf(remoteAddress);
    const origin = site ?? host;
    if (this.#slow.has(origin) || this.#slow.size >= most) {
      const retryAfter = this.#slow.size;
      throw new KmsError('rate-limited', `other passphrases are being tried; try again in ${retryAfter} s`, {
        retryAfter,
      });
    }
    this.#slow.add(origin);
    return this.#queue.run(attempt).finally(() => this.#slow.delete(origin));
  }
}

function keysOf({ remoteAddress = '' }: Origin): BackoffKeys<keyof typeof thresholds> {
  const { host, site } = networksOf(remoteAddress);
  return site === undefined
    ? [['address', host]]
    : [
        ['address', host],
        ['site', site],
      ];
}
