// Page is a page of the console for users who are logged in: one component, listed in the table in pages.ts. It starts
// with PageHeader, loads data with `useAnswer` or `useList` (parts/state.ts), and links with `hrefTo`; the shell
// follows such links without reloading.
import type { Child } from 'hono/jsx/dom';
import type { ConsolePageName } from '../api/console-pages.ts';
import type { Client } from '../client/client.ts';
import type { Session } from './session.ts';

export interface PageProps {
  /** Sends the session's credential. It throws `KmsError`; an ended session is already handled. */
  readonly api: Client;
  /** The client without the flag check. There is one for the whole session, and it caches unwrapped keys. */
  readonly keeper: Client;
  /** The client for automatic refreshes, which are not recorded each time. */
  readonly polls: Client;
  /** Gets the bytes with which a POST is answered, such as `/system/backup`. */
  readonly stream: (path: string, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>;
  readonly session: Session;
  /** Navigates to an address made with `hrefTo`. `replace`: without a history entry. */
  readonly navigate: (href: string, how?: 'replace') => void;
  /** Values of the path's parameters. The page is mounted again when they change, but not when the query does. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

export interface Page {
  readonly name: ConsolePageName;
  readonly component: (props: PageProps) => Child;
  /** The navigation entry that is highlighted for this page. */
  readonly under: ConsolePageName;
  /** For entries: operations of which at least one is needed to see or do anything there. */
  readonly needs?: readonly string[];
}
