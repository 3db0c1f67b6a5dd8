// The addresses of the console's pages as the browser has them: the appliance may have a path of its own in front.
import type { ConsolePageName } from '../api/console-pages.ts';
import { type Place, pathTo, placeOf, type Values } from './place.ts';

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
