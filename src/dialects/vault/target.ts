// The target of a request of Vault's clients: its path, decoded and cut into parts, and the operation that these name.
import type { ApiRequest } from '../../http/request.ts';
import { invalid } from './answers.ts';
import { type Operation, operationOf } from './operations.ts';

export interface Target {
  readonly method: string;
  /** The path behind /v1, decoded, without empty parts. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly isList: boolean;
  /** The operation that the whole path names, by `operationOf`. Looked up once, and only for holders of a token. */
  operation(): Operation | string | undefined;
}

const noQuery = new URLSearchParams();

/** Targets that are remembered, of so many characters at most; one more lets go of them all. */
const mostTargets = 1000;
const longestTarget = 200;

/** Characters of a path, and the parts that it has: a mount of several, an operation, and names that are escaped. */
const longestPath = 2048;
const mostParts = 32;

const tooLong = invalid(`the path is longer than ${longestPath} characters, or has more than ${mostParts} parts`);

export class Targets {
  readonly #remembered = new Map<string, Target>();

  /** Undefined for a path that is not under /v1. Throws `invalid` for one that cannot be read. */
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
  // Go's truth values: hvac asks with `list=True`.
  const isList = query !== noQuery && /^(?:1|t|T|true|TRUE|True)$/.test(query.get('list') ?? '');
  const operation = () => {
    found ??= { operation: operationOf(method, parts, isList) };
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
