// Console cookie carries the session of the console's pages: the token is in a cookie that no script reads, and each of
// their requests has a header that no page of another origin can send. It is read only from requests with that header
// and without `Authorization`; a cookie alone is never a credential.

import type { World } from '../core/context.ts';
import { keepingKey, keptName, openToken, sealToken } from '../core/kept-token.ts';
import { readAuthority } from '../model/hosts.ts';
import { consoleHeader } from '../model/names.ts';
import { type ApiRequest, headerOf } from './request.ts';
import type { Outcome } from './respond.ts';
import { hostOf } from './tenant-directory.ts';

/** Browsers that honour this prefix accept the cookie only over HTTPS, from this host and for this host. */
const hostPrefix = '__Host-';

/** Cookies of one name that are tried: a page on another port or at a deeper path may have set some. */
const mostTried = 8;

/** One request of the console. */
export class ConsoleCookie {
  /** The token in the cookie; undefined if there is none, or none that this page's key opens. */
  readonly token: string | undefined;
  readonly #key: Uint8Array;
  readonly #name: string;
  readonly #isSecure: boolean;
  #change: string | undefined = undefined;

  /** @param origin of the page that asks. */
  constructor(key: Uint8Array, cookies: string, origin: string) {
    const name = keptName(key);
    const secure = tokenIn(cookies, hostPrefix + name, key);
    this.token = secure ?? tokenIn(cookies, name, key);
    this.#key = key;
    this.#isSecure = this.token === undefined ? origin.startsWith('https:') : secure !== undefined;
    this.#name = (this.#isSecure ? hostPrefix : '') + name;
  }

  /** Moves the token from the answer into the cookie, where no script can read it. */
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

  /** The outcome with the cookie that it sets. When the session is over, the cookie is deleted. */
  told(outcome: Outcome, isEnd: boolean): Outcome {
    const { status, headers } = outcome;
    const isOver = this.token !== undefined && (status === 401 || (isEnd && status === 200));
    const change = isOver ? `${this.#name}=; ${this.#attributes}; Max-Age=0` : status === 200 && this.#change;
    return change ? { ...outcome, headers: { ...headers, 'Set-Cookie': change } } : outcome;
  }

  /** No expiry: the cookie ends with the browser's session, and the session itself ends at the appliance. */
  get #attributes(): string {
    return `Path=/; HttpOnly; SameSite=Strict${this.#isSecure ? '; Secure' : ''}`;
  }
}

/**
 * The console cookie of a request; undefined if the request does not come from the console's own pages. `base` is the
 * address at which people reach the tenant.
 */
export function consoleCookieOf(request: ApiRequest, base: string): ConsoleCookie | undefined {
  const sent = headerOf(request, consoleHeader);
  if (sent === undefined || headerOf(request, 'authorization') !== undefined || !isOwnPage(request, base))
    return undefined;
  const key = keepingKey(sent);
  return key && new ConsoleCookie(key, headerOf(request, 'cookie') ?? '', originOf(request, base));
}

/**
 * Whether the browser says that the page is of this origin, in headers that scripts cannot set. If it says nothing, the
 * console's own header is the proof: only pages of this origin can send it.
 */
function isOwnPage(request: ApiRequest, base: string): boolean {
  const site = headerOf(request, 'sec-fetch-site');
  if (site !== undefined) return site === 'same-origin';
  const origin = headerOf(request, 'origin');
  return origin === undefined || origin === originOf(request, base);
}

/**
 * The origin that the browser sends, if its host is the host of this request, as a tenant may be reached by several;
 * else the origin of `base`. Browsers send none with a GET: if they say that the page is of this origin, the host is
 * that of the request.
 */
export function originOf(request: ApiRequest, base: string): string {
  const own = new URL(base);
  const here = hostOf(request)?.text;
  const said = headerOf(request, 'origin');
  if (said === undefined) {
    const isOfPage = headerOf(request, 'sec-fetch-site') === 'same-origin' && here !== undefined;
    return isOfPage ? `${own.protocol}//${here}` : own.origin;
  }
  const page = /^https?:/i.test(said) && URL.canParse(said) ? new URL(said) : undefined;
  const host = page && readAuthority(page.host)?.text;
  return page && host !== undefined && host === here ? page.origin : own.origin;
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
