// Addresses of the console's pages in the browser, which may have the appliance's own path in front; and holding users
// on a page that must not be left yet.
import { useLayoutEffect, useRef } from 'hono/jsx/dom';
import type { ConsolePageName } from '../api/console-pages.ts';
import { type Place, pathTo, placeOf, type Values } from './page-path.ts';

const prefix = window.location.pathname.replace(/\/console(?:\/.*)?$/, '');

/** The appliance's base URL: everything before the console's path. */
export const baseUrl = window.location.origin + prefix;

/** The guides, which are outside the console. */
export const guidesUrl = `${baseUrl}/docs/guides`;

/** For the `href` of a link, and for `navigate`: `hrefTo('keyring', { name: 'payroll' })`. */
export function hrefTo(page: ConsolePageName, params?: Values, query?: Values): string {
  return prefix + pathTo(page, params, query);
}

/** The page at this address, such as the window's own. */
export function placeAt({ pathname, search }: { pathname: string; search: string }): Place | undefined {
  return pathname.startsWith(prefix) ? placeOf(pathname.slice(prefix.length), search) : undefined;
}

let held = 0;

/** Whether the page must not be left: the browser asks before leaving, and the shell does not navigate. */
export function isHeld(): boolean {
  return held > 0;
}

/** Holds the page while the component is mounted, or until the returned function is called. */
export function useHold(): () => void {
  const release = useRef<() => void>(() => {});
  // A layout effect, since a normal one might run after unmount, when nothing would release the hold.
  useLayoutEffect(() => {
    const ask = (event: Event): void => event.preventDefault();
    held += 1;
    window.addEventListener('beforeunload', ask);
    release.current = () => {
      held -= 1;
      window.removeEventListener('beforeunload', ask);
      release.current = () => {};
    };
    return () => release.current?.();
  }, []);
  return () => release.current?.();
}
