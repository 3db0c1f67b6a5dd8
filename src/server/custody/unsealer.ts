// Unsealing step by step: shares given by several people add up here, a passphrase or a key opens at once. What was given is kept in
// memory alone, until it opens the seal, turns out not to fit, or is forgotten on request.
import type { UnsealStep } from '../../api/seal.ts';
import { utf8 } from '../../crypto/encoding.ts';
import { combineShares } from '../../crypto/shamir.ts';
import { KmsError } from '../../errors.ts';
import { parseHeader } from '../../seal/header.ts';
import { parseSecret } from '../../seal/key-text.ts';
import { parseShare, type Share } from '../../seal/share.ts';
import { type Slot, slotIdOf } from '../../seal/slot.ts';
import type { KeySources } from './key-sources.ts';
import { type OpenedSeal, openWith, openWithPassphrase, type SealBytes, unlockSeal } from './unlock.ts';

export interface UnsealerOptions {
  /** The data directory. */
  readonly data: string;
  readonly sources: KeySources;
  read(): Promise<SealBytes>;
}

export class Unsealer {
  readonly #options: UnsealerOptions;
  /** By the slot that they open, then by their number. */
  readonly #shares = new Map<string, Map<number, Share>>();
  #slots: readonly Slot[] = [];

  constructor(options: UnsealerOptions) {
    this.#options = options;
  }

  /** Looks at the seal without opening it; to be called whenever it may have changed. */
  async look(): Promise<void> {
    await this.#read();
  }

  get slots(): readonly Slot[] {
    return this.#slots;
  }

  /** How far the shares are: those of the split that got furthest. Undefined where shares open nothing. */
  get progress(): { readonly threshold: number; readonly progress: number } | undefined {
    const splits = this.#slots
      .filter(({ kind }) => kind === 'shares')
      .map((slot) => ({ threshold: thresholdOf(slot), progress: this.#shares.get(slot.id)?.size ?? 0 }));
    return splits.sort((a, b) => b.progress - a.progress)[0];
  }

  /** The opened seal, or undefined when more shares are needed. Throws for a step that does not help. */
  async take(step: UnsealStep): Promise<OpenedSeal | undefined> {
    if (step.reset) {
      this.forget();
      return undefined;
    }
    const from = await this.#read();
    if (step.share !== undefined) return this.#takeShare(from, step.share);
    if (step.passphrase !== undefined) return openWithPassphrase(from, this.#slots, step.passphrase);
    if (step.key !== undefined) {
      return openWith(from, this.#slots, parseSecret(utf8(step.key), 'the key'), 'wrong key');
    }
    return this.#retry(from);
  }

  /** What is missing is said so that it is understood from afar, too. */
  async #retry(from: SealBytes): Promise<OpenedSeal> {
    try {
      return await unlockSeal(from, this.#options.data, this.#options.sources);
    } catch (error) {
      if (!(error instanceof KmsError) || error.code !== 'sealed' || /\bsealed\b/.test(error.message)) throw error;
      const details = error.hint === undefined ? {} : { hint: error.hint };
      throw new KmsError('sealed', `the appliance is sealed: ${error.message}`, details);
    }
  }

  forget(): void {
    for (const shares of this.#shares.values()) for (const { bytes } of shares.values()) bytes.fill(0);
    this.#shares.clear();
  }

  #takeShare(from: SealBytes, text: string): OpenedSeal | undefined {
    const share = parseShare(text);
    const splits = this.#slots.filter(({ kind }) => kind === 'shares');
    const slot = splits.find(({ params }) => params.set === share.set);
    if (!slot || thresholdOf(slot) !== share.threshold) {
      const needed = splits.map(({ params }) => params.set).join(' or ');
      const needs = needed === '' ? 'no shares open it' : `needs one of the set ${needed}, got one of ${share.set}`;
      throw new KmsError('refused', `that share is not of this appliance: ${needs}`);
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
    this.#slots = parseHeader(from.bytes, from.name).header.slots;
    return from;
  }
}

function thresholdOf({ params: { threshold } }: Slot): number {
  if (typeof threshold !== 'number' || threshold < 2 || threshold > 255) {
    throw new KmsError('corrupt', 'the seal file does not say how many shares it takes');
  }
  return threshold;
}
