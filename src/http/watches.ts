// Watches are requests that poll an endpoint which may be watched, with the tag of the answer that they have. They are
// recorded once an hour for each credential and address, and get no answer while that would be the same.
import { randomBytes } from 'node:crypto';
import { toBase64Url, utf8 } from '../crypto/bytes.ts';
import { hmacSha256 } from '../crypto/hash.ts';
import type { AppliancePort } from './appliance-port.ts';
import { type ApiRequest, headerOf } from './request.ts';

/** Milliseconds between two records of a watch. */
const recordedEvery = 3_600_000;
/** Watches remembered; a forgotten one is recorded again. */
const mostWatches = 10_000;

/** Header fields that an answer may depend on. */
const vary = 'Authorization, Cookie, Kms-Console';

export function isWatch(request: ApiRequest): boolean {
  return headerOf(request, 'if-none-match') !== undefined;
}

class Watches {
  readonly #recordedAt = new Map<string, number>();
  readonly #mac: (message: Uint8Array) => Uint8Array;

  constructor() {
    // The tags mean nothing outside this process, and tell nothing about what they stand for.
    this.#mac = hmacSha256(randomBytes(32));
  }

  /** Whether a request of this watcher is to be recorded. A clock that was set back counts too. */
  isDue(watcher: string, now: number): boolean {
    const at = this.#recordedAt.get(watcher);
    return at === undefined || Math.abs(now - at) >= recordedEvery;
  }

  recorded(watcher: string, now: number): void {
    this.#recordedAt.delete(watcher);
    this.#recordedAt.set(watcher, now);
    const [oldest] = this.#recordedAt.keys();
    if (this.#recordedAt.size > mostWatches && oldest !== undefined) this.#recordedAt.delete(oldest);
  }

  /** Forgets a record that did not become durable. */
  lost(watcher: string): void {
    this.#recordedAt.delete(watcher);
  }

  /** Headers of an answer to this watcher, and whether the request already has that answer. */
  match(request: ApiRequest, watcher: string, answer: unknown, apart: readonly string[]) {
    const content = JSON.stringify(answer, (name, value: unknown) => (apart.includes(name) ? undefined : value));
    const tag = `W/"${toBase64Url(this.#mac(utf8(`${watcher}\n${request.path}${request.search}\n${content}`)).slice(0, 18))}"`;
    const known = headerOf(request, 'if-none-match')?.split(',') ?? [];
    const isKnown = known.some((each) => each.trim() === '*' || `W/${each.trim().replace(/^W\//, '')}` === tag);
    return { headers: { ETag: tag, Vary: vary }, isKnown };
  }
}

const watches = new WeakMap<AppliancePort, Watches>();

export function watchesOf(appliance: AppliancePort): Watches {
  const known = watches.get(appliance) ?? new Watches();
  watches.set(appliance, known);
  return known;
}
