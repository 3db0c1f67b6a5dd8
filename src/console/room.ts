// What a room is: a page for somebody who is logged in. Each is one component in rooms/, named in the table in rooms.ts.
//
// A room begins with <PageHeader title=…>, gets its data with `useAnswer` or `usePages` (parts/answer.tsx, parts/data-table.tsx), links with
// <a href={hrefTo('keyring', { name })}> (the shell follows links to pages without loading anew), and uses what else is in parts/.
import type { Child } from 'hono/jsx/dom';
import type { ConsolePageName } from '../api/console-pages.ts';
import type { Client } from '../client/client.ts';
import type { Session } from './session.ts';

export interface RoomProps {
  /** Carries the session's credential. What it throws is a `KmsError`; a session that ended is dealt with already. */
  readonly api: Client;
  /** Of what answers text and is no method of `api`, such as `/metrics`. */
  readonly text: (path: string, signal: AbortSignal) => Promise<string>;
  /** Of what answers a POST with bytes, such as `/system/backup`. */
  readonly stream: (path: string, signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>;
  readonly session: Session;
  /** Goes to an address made with `hrefTo`. `replace`: without a step in the history. */
  readonly navigate: (href: string, how?: 'replace') => void;
  /** The values of the path's braces. A room begins anew when they change, not when the query does. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

export interface Room {
  readonly page: ConsolePageName;
  readonly component: (props: RoomProps) => Child;
  /** The page whose entry in the navigation stands for this room. */
  readonly under: ConsolePageName;
  /** Of an entry: the operation that is needed to see anything there. */
  readonly needs?: string;
}
