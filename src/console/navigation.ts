// Navigation is the addresses of the console's pages as the browser has them, since the appliance may have a path of
// its own in front; and keeping people on a page that is not to be left.
import { useLayoutEffect, useRef } from 'hono/jsx/dom';
import type { ConsolePageName } from '../api/console-pages.ts';
import { type Place, pathTo, placeOf, type Values } from './page-path.ts';

const prefix = window.location.pathname.replace(/\/console(?:\/.*)?$/, '');

/** The appliance's own address: all that stands before the console's path. */
export const baseUrl = window.location.origin + prefix;

/** For the `href` of a link, and for `navigate`: `hrefTo('keyring', { name: 'payroll' })`. */
export function hrefTo(page: ConsolePageName, params?: Values, query?: Values): string {
  return prefix + pathTo(page, params, query);
}

/** Where the window, or another address of this origin, is. */
export function placeAt({ pathname, search }: { pathname: string; search: string }): Place | undefined {
  return pathname.startsWith(prefix) ? placeOf(pathname.slice(prefix.length), search) : undefined;
}

let held = 0;

/** Whether the page is not to be left: the browser asks before it goes elsewhere, and the shell goes nowhere. */
export function isHeld(): boolean {
  return held > 0;
}

/** Holds the page while the part is there, or until what it answers is called. */
export function useHold(): () => void {
  const release = useRef<() => void>(() => {});
  // An effect that is run later might be run after the part is gone, and then nobody would let go.
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
