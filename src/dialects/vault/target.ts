// The target of a Vault client's request: its path, decoded and split into parts, and the operation that they name.
import type { ApiRequest } from '../../http/request.ts';
import { invalid } from './answers.ts';
import { type Named, operationOf } from './operations.ts';

export interface Target {
  readonly method: string;
  /** The path after /v1, decoded, without empty parts. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly isList: boolean;
  /** The operation that the whole path names, by `operationOf`. Computed on first use and kept. */
  operation(): Named | undefined;
}

const noQuery = new URLSearchParams();

/** Maximum number of cached targets, and the longest that is cached in characters; the cache is cleared when full. */
const mostTargets = 1000;
const longestTarget = 200;

/** Limits in characters of a path and in parts, which allow for a long mount, an operation and escaped names. */
const longestPath = 2048;
const mostParts = 32;

const tooLong = invalid(`the path is longer than ${longestPath} characters, or has more than ${mostParts} parts`);

export class Targets {
  readonly #remembered = new Map<string, Target>();

  /**
   * The target; undefined for a path that is not under /v1. Throws `invalid` for a path that is too long or malformed.
   */
  of({ method, path, search }: ApiRequest): Target | undefined {
    const name = `${method} ${path}`;
    const known = search === '' ? this.#remembered.get(name) : undefined;
    if (known) return known;
    if (path.length > longestPath) throw tooLong;
    const parts = path.split('/').filter((part) => part !== '');
    if (parts.shift() !== 'v1') return undefined;
    if (parts.length > mostParts) throw tooLong;
    const made = targetOf(method, decoded(parts), search === '' ? noQuery : new URLSearchParams(search));
    if (search === '' && name.length <= longestTarget) this.#remember(name, made);
    return made;
  }

  #remember(name: string, target: Target): void {
    if (this.#remembered.size >= mostTargets) this.#remembered.clear();
    this.#remembered.set(name, target);
  }
}

function targetOf(method: string, parts: readonly string[], query: URLSearchParams): Target {
  let found: { readonly operation: ReturnType<Target['operation']> } | undefined;
  // Go's spellings of true: hvac sends `list=True`.
  const isList = query !== noQuery && /^(?:1|t|T|true|TRUE|True)$/.test(query.get('list') ?? '');
  const operation = () => {
    found ??= { operation: operationOf({ method, path: parts, isList, query }) };
    return found.operation;
  };
  return { method, parts, query, isList, operation };
}

function decoded(parts: readonly string[]): string[] {
  try {
    return parts.map(decodeURIComponent);
  } catch {
    throw invalid('the path is not well-formed');
  }
}
