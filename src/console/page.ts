// Page is a page of the console for somebody who is logged in: one component, named in the table in pages.ts. It begins
// with PageHeader, gets its data with `useAnswer` or `useList` (parts/state.ts), and links with `hrefTo`; the shell
// follows such links without loading anew.
import type { Child } from 'hono/jsx/dom';
import type { ConsolePageName } from '../api/console-pages.ts';
import type { Client } from '../client/client.ts';
import type { Session } from './session.ts';

export interface PageProps {
  /** Carries the session's credential. What it throws is a `KmsError`; a session that ended is dealt with already. */
  readonly api: Client;
  /** The same without what the flags refuse beforehand, and one for the whole session: it keeps unwrapped keys. */
  readonly keeper: Client;
  /** Of what answers text and is no method of `api`, such as `/metrics`. */
  readonly text: (path: string, signal: AbortSignal) => Promise<string>;
  /** Of what answers a POST with bytes, such as `/system/backup`. */
  readonly stream: (path: string, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>;
  readonly session: Session;
  /** Goes to an address made with `hrefTo`. `replace`: without a step in the history. */
  readonly navigate: (href: string, how?: 'replace') => void;
  /** The values of the path's braces. A page begins anew when they change, not when the query does. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

export interface Page {
  readonly name: ConsolePageName;
  readonly component: (props: PageProps) => Child;
  /** The page whose entry in the navigation stands for this one. */
  readonly under: ConsolePageName;
  /** Of an entry: the operations of which one is needed to see or do anything there. */
  readonly needs?: readonly string[];
}
