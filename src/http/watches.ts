// Watches are requests that poll an endpoint which may be watched, with the tag of the answer that they have, and those
// with which a console page keeps its session. They are recorded once an hour for each credential and address. A poll
// gets no answer while that would be the same.
import { type AnswerTag, answerTag } from '../core/answer-tag.ts';
import type { Caller } from '../core/context.ts';
import type { AppliancePort } from './appliance-port.ts';
import { type ApiRequest, headerOf } from './request.ts';
import type { TenantHandle } from './tenant-directory.ts';

/** Milliseconds between two records of a watch. */
const recordedEvery = 3_600_000;
/** Watches remembered; a forgotten one is recorded again. */
const mostWatches = 10_000;

/** Header fields that an answer may depend on. */
const vary = 'Authorization, Cookie, Kms-Console';

/** A request to an endpoint that may be watched, or by which a page keeps its session. */
export class Watch {
  readonly #watches: Watches;
  readonly #request: ApiRequest;
  /** The credential and the address. */
  readonly #watcher: string;
  readonly #now: number;
  #isRecorded = false;
  /** Whether it asks for no more than what is newer than an answer that it has, or keeps a page's session. */
  readonly polls: boolean;
  /** Whether it is recorded. */
  readonly isDue: boolean;

  constructor(watches: Watches, request: ApiRequest, watcher: string, now: number, byPage: boolean) {
    this.#watches = watches;
    this.#request = request;
    this.#watcher = watcher;
    this.#now = now;
    this.polls = byPage || headerOf(request, 'if-none-match') !== undefined;
    this.isDue = !this.polls || watches.isDue(watcher, now);
  }

  noteRecord(): void {
    this.#isRecorded = true;
    this.#watches.recorded(this.#watcher, this.#now);
  }

  /** The record, if there was one, did not become durable. */
  loseRecord(): void {
    if (this.#isRecorded) this.#watches.lost(this.#watcher);
  }

  /** Headers of the answer, and whether the request has it already. `apart`: fields that change by themselves. */
  match(answer: unknown, apart: readonly string[]) {
    const { path, search } = this.#request;
    const content = JSON.stringify(answer, (name, value: unknown) => (apart.includes(name) ? undefined : value));
    const tag = `W/"${this.#watches.tag(this.#watcher, path + search, content)}"`;
    const known = headerOf(this.#request, 'if-none-match')?.split(',') ?? [];
    const isKnown = known.some((each) => each.trim() === '*' || `W/${each.trim().replace(/^W\//, '')}` === tag);
    return { headers: { ETag: tag, Vary: vary }, isKnown };
  }
}

/** The times at which watches were recorded. */
class Watches {
  readonly #recordedAt = new Map<string, number>();
  readonly tag: AnswerTag;

  constructor({ world }: AppliancePort) {
    this.tag = answerTag(world.random);
  }

  /** A clock that was set back counts as an hour. */
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

  lost(watcher: string): void {
    this.#recordedAt.delete(watcher);
  }
}

const known = new WeakMap<AppliancePort, Watches>();

export function watchOf(
  appliance: AppliancePort,
  { handle, request }: { readonly handle: TenantHandle; readonly request: ApiRequest },
  { id, session }: Caller,
  byPage: boolean,
): Watch {
  const watches = known.get(appliance) ?? new Watches(appliance);
  known.set(appliance, watches);
  const watcher = `${handle.tenant.id} ${id} ${session ?? ''} ${request.remoteAddress ?? ''}`;
  return new Watch(watches, request, watcher, appliance.world.now(), byPage);
}
