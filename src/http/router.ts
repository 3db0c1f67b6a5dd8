// Router finds the handler of a request among the declared paths. Exact paths come first: a declared path never falls
// to a pattern, whatever the method. Then patterns with the same number of segments, in the order of their declaration.
import { tryDecodeURIComponent } from 'hono/utils/url';
import { decodedPath } from './request.ts';
import type { PathParams } from './route.ts';

/** A path with `{name}` for each parameter, which matches one non-empty segment. */
interface Routed {
  readonly method: string;
  readonly path: string;
  /** Unknown to all but the administrator at the machine. */
  readonly local?: true;
  /** HEAD is not served by its GET. */
  readonly noHead?: boolean;
}

interface Found<T> {
  readonly served: T;
  readonly params: PathParams;
}

interface Pattern<T> {
  readonly served: T;
  readonly segments: readonly string[];
}

const noParams: PathParams = Object.freeze({});

export class Router<T extends Routed> {
  /** Keyed by method and path, such as `POST /ks/encrypt`. */
  readonly #exact = new Map<string, Found<T>>();
  readonly #exactPaths = new Map<string, T[]>();
  /** Keyed by number of segments. */
  readonly #patterns = new Map<number, Pattern<T>[]>();

  constructor(paths: readonly T[]) {
    for (const served of paths) {
      const { method, path, noHead } = served;
      if (path.includes('{')) {
        const segments = path.split('/');
        append(this.#patterns, segments.length, { served, segments });
        continue;
      }
      append(this.#exactPaths, path, served);
      const found = { served, params: noParams };
      this.#exact.set(`${method} ${path}`, found);
      if (method === 'GET' && !noHead) this.#exact.set(`HEAD ${path}`, found);
    }
  }

  /** @param path as sent, with escapes. */
  find(method: string, path: string): Found<T> | undefined {
    const exact = this.#exact.get(`${method} ${path}`);
    return exact ?? this.#findDecoded(method, decodedPath(path));
  }

  #findDecoded(method: string, path: string): Found<T> | undefined {
    if (this.#exactPaths.has(path)) return this.#exact.get(`${method} ${path}`);
    const segments = path.split('/');
    for (const pattern of this.#patterns.get(segments.length) ?? []) {
      if (takes(pattern.served, method) && matches(pattern.segments, segments)) {
        return { served: pattern.served, params: paramsOf(pattern.segments, segments) };
      }
    }
    return undefined;
  }

  /** The methods of a path, including the local administrator's if `local`; none for an unknown path. */
  methodsOf(path: string, local: boolean): string[] {
    const decoded = decodedPath(path);
    const segments = decoded.split('/');
    const known = (served: T): boolean => local || !served.local;
    const exact = (this.#exactPaths.get(decoded) ?? []).filter(known);
    const taking = (this.#patterns.get(segments.length) ?? [])
      .filter((pattern) => known(pattern.served) && matches(pattern.segments, segments))
      .map(({ served }) => served);
    const methods = new Set<string>();
    for (const { method, noHead } of exact.length > 0 ? exact : taking) {
      methods.add(method);
      if (method === 'GET' && !noHead) methods.add('HEAD');
    }
    return [...methods].sort();
  }
}

function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

function takes({ method, noHead }: Routed, wanted: string): boolean {
  return method === wanted || (wanted === 'HEAD' && method === 'GET' && !noHead);
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.every((part, n) => (part.startsWith('{') ? segments[n] !== '' : part === segments[n]));
}

/** Escapes that cannot be decoded stay as they are. */
function paramsOf(pattern: readonly string[], segments: readonly string[]): PathParams {
  const params: Record<string, string> = {};
  for (const [n, part] of pattern.entries()) {
    if (part.startsWith('{')) params[part.slice(1, -1)] = tryDecodeURIComponent(segments[n] ?? '');
  }
  return params;
}
