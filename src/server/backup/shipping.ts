// Ships at an interval for as long as the appliance is open, and tells how old what arrived is.
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { nodeFiles } from '../../store/node-files.ts';
import { makeDirs } from '../make-dirs.ts';
import type { Notice } from '../notices.ts';
import { fileTrouble } from '../trouble.ts';
import { type ShipDeps, Shipper } from './ship.ts';

export interface ShippingSettings {
  readonly to: string;
  /** Milliseconds. */
  readonly every: number;
  /** For how long earlier states stay restorable, in milliseconds. */
  readonly window: number;
}

export const defaultShipEvery = 5000;
export const defaultShipWindow = 24 * 60 * 60 * 1000;

/** For what is left at the end, in milliseconds. */
const patience = 15_000;

export interface ShippingStatus {
  readonly to: string;
  /** Epoch milliseconds: everything that was durable then has arrived. */
  readonly arrivedAt: number | undefined;
  /** Why the last try failed. */
  readonly trouble?: string;
}

export class Shipping {
  readonly #settings: ShippingSettings;
  readonly #deps: Omit<ShipDeps, 'target' | 'window'>;
  readonly #onNotice: (notice: Notice) => void;
  readonly #shipper: Shipper;
  #arrivedAt: number | undefined;
  #trouble: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(
    deps: Omit<ShipDeps, 'target' | 'window'>,
    settings: ShippingSettings,
    onNotice: (notice: Notice) => void,
  ) {
    this.#settings = { ...settings, to: resolve(settings.to) };
    this.#deps = deps;
    this.#onNotice = onNotice;
    const target = (directory: string) => nodeFiles(join(this.#settings.to, directory));
    this.#shipper = new Shipper({ ...deps, target, window: settings.window });
  }

  get status(): ShippingStatus {
    const { to } = this.#settings;
    return { to, arrivedAt: this.#arrivedAt, ...(this.#trouble === undefined ? {} : { trouble: this.#trouble }) };
  }

  /** The first time at once; nobody waits for it. */
  start(): void {
    this.#running = this.#once().then(() => this.#next());
  }

  /** Ships what is left, then stops. A directory that hangs holds nobody up for long. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const last = this.#running.then(() => this.#once());
    const over = new AbortController();
    await Promise.race([last, setTimeout(patience, undefined, { signal: over.signal }).catch(() => {})]);
    over.abort();
  }

  #next(): void {
    if (this.#closed) return;
    this.#timer = globalThis.setTimeout(() => this.start(), this.#settings.every).unref();
  }

  async #once(): Promise<void> {
    const at = this.#deps.now();
    try {
      await makeDirs(this.#settings.to);
      await this.#shipper.ship();
      if (this.#trouble !== undefined) this.#onNotice({ level: 'info', message: 'shipping works again' });
      this.#arrivedAt = at;
      this.#trouble = undefined;
    } catch (error) {
      const known = fileTrouble(error, this.#settings.to);
      const trouble = known instanceof Error ? known.message : String(known);
      // Said once, not at each try.
      if (trouble !== this.#trouble) {
        this.#onNotice({
          level: 'error',
          message: `shipping to ${this.#settings.to} failed: ${trouble}`,
          cause: error,
        });
      }
      this.#trouble = trouble;
    }
  }
}
