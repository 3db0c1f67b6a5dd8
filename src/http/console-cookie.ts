// Console cookie is how the console's pages carry a session: the token stays in a cookie that no script reads, and each
// of their requests has a header that no page from elsewhere can send. Only requests that have that header, and no
// `Authorization`, are looked at for it; a cookie by itself is never a credential.

import type { World } from '../core/context.ts';
import { keepingKey, keptName, openToken, sealToken } from '../core/kept-token.ts';
import { readAuthority } from '../model/hosts.ts';
import { consoleHeader } from '../model/names.ts';
import { type ApiRequest, headerOf } from './request.ts';
import type { Outcome } from './respond.ts';
import { hostOf } from './tenant-directory.ts';

/** Browsers that honour the prefix take such a cookie over HTTPS alone, for this host alone, from this host alone. */
const hostPrefix = '__Host-';

/** Cookies of one name that are tried: a page at another port or below may have set some. */
const mostTried = 8;

/** One request of the console. */
export class ConsoleCookie {
  /** What the cookie holds; undefined where there is none, or none of this page's. */
  readonly token: string | undefined;
  readonly #key: Uint8Array;
  readonly #name: string;
  readonly #isSecure: boolean;
  #change: string | undefined = undefined;

  /** @param origin where the page is that asks. */
  constructor(key: Uint8Array, cookies: string, origin: string) {
    const name = keptName(key);
    const secure = tokenIn(cookies, hostPrefix + name, key);
    this.token = secure ?? tokenIn(cookies, name, key);
    this.#key = key;
    this.#isSecure = this.token === undefined ? origin.startsWith('https:') : secure !== undefined;
    this.#name = (this.#isSecure ? hostPrefix : '') + name;
  }

  /** The answer without the token, which goes into the cookie: no script gets to see it. */
  taken(answer: unknown, random: World['random']): unknown {
    if (typeof answer !== 'object' || answer === null) return answer;
    for (const field of ['accessToken', 'accesstoken']) {
      const token: unknown = Reflect.get(answer, field);
      if (typeof token !== 'string' || token === '') continue;
      this.#change = `${this.#name}=${sealToken(this.#key, token, random)}; ${this.#attributes}`;
      return { ...answer, [field]: '' };
    }
    return answer;
  }

  /** The answer as it goes out, with the cookie that came of it. A session that is over takes its cookie along. */
  told(outcome: Outcome, isEnd: boolean): Outcome {
    const { status, headers } = outcome;
    const isOver = this.token !== undefined && (status === 401 || (isEnd && status === 200));
    const change = isOver ? `${this.#name}=; ${this.#attributes}; Max-Age=0` : status === 200 && this.#change;
    return change ? { ...outcome, headers: { ...headers, 'Set-Cookie': change } } : outcome;
  }

  /** Without an end of its own: it goes with the browser's session, and what it holds ends at the appliance. */
  get #attributes(): string {
    return `Path=/; HttpOnly; SameSite=Strict${this.#isSecure ? '; Secure' : ''}`;
  }
}

/**
 * What the request has of the console; undefined where it is none of its pages' own. `base` is the address at which
 * people reach the tenant.
 */
export function consoleCookieOf(request: ApiRequest, base: string): ConsoleCookie | undefined {
  const sent = headerOf(request, consoleHeader);
  if (sent === undefined || headerOf(request, 'authorization') !== undefined || !isOwnPage(request, base))
    return undefined;
  const key = keepingKey(sent);
  return key && new ConsoleCookie(key, headerOf(request, 'cookie') ?? '', originOf(request, base));
}

/**
 * What browsers say of the page that asks, and scripts cannot change: a request from another origin is none of the
 * console's. One that says nothing of it has the header still, which only pages of this origin can send.
 */
function isOwnPage(request: ApiRequest, base: string): boolean {
  const site = headerOf(request, 'sec-fetch-site');
  if (site !== undefined) return site === 'same-origin';
  const origin = headerOf(request, 'origin');
  return origin === undefined || origin === originOf(request, base);
}

/** What the browser says, where it is a page at the host that was asked: a tenant may be reached by several. */
export function originOf(request: ApiRequest, base: string): string {
  const said = headerOf(request, 'origin') ?? '';
  const page = /^https?:/i.test(said) && URL.canParse(said) ? new URL(said) : undefined;
  const host = page && readAuthority(page.host)?.text;
  return page && host !== undefined && host === hostOf(request)?.text ? page.origin : new URL(base).origin;
}

function tokenIn(cookies: string, name: string, key: Uint8Array): string | undefined {
  let tried = 0;
  for (const each of cookies.split(';')) {
    const equals = each.indexOf('=');
    if (each.slice(0, equals).trim() !== name) continue;
    const token = openToken(key, each.slice(equals + 1).trim());
    if (token !== undefined || ++tried === mostTried) return token;
  }
  return undefined;
}
