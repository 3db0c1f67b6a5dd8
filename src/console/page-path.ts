// Place is a location in the console: maps a path to a declared page with its parameters, and back. Pure; navigation.ts
// knows the window.
import { type ConsolePageName, consolePages } from '../api/console-pages.ts';

export interface Place {
  readonly page: ConsolePageName;
  /** Values of the path's parameters. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

export type Values = Readonly<Record<string, string | undefined>>;

/** The path of a page with its parameters filled in, followed by the values of `query` that are set. */
export function pathTo(page: ConsolePageName, params: Values = {}, query: Values = {}): string {
  const path = consolePages[page].path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  );
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path;
}

/** Undefined if no page matches. */
export function placeOf(path: string, search = ''): Place | undefined {
  const parts = path.replace(/\/$/, '').split('/');
  for (const page of Object.keys(consolePages) as ConsolePageName[]) {
    const params = match(consolePages[page].path.split('/'), parts);
    if (params) return { page, params, query: new URLSearchParams(search) };
  }
  return undefined;
}

function match(pattern: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const part = parts[index] ?? '';
    const name = /^\{(\w+)\}$/.exec(expected)?.[1];
    if (name === undefined && part !== expected) return undefined;
    if (name === undefined) continue;
    const value = decoded(part);
    if (value === undefined || value === '') return undefined;
    params[name] = value;
  }
  return params;
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
