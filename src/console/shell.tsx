// The frame around the rooms: where one is and can go, who is logged in, and what has to be known everywhere. It follows the links between
// pages without loading anew.
import { type Child, useEffect, useLayoutEffect } from 'hono/jsx/dom';
import { consolePages } from '../api/console-pages.ts';
import type { Client } from '../client/client.ts';
import { hrefTo, placeAt } from './address.ts';
import { Brand } from './brand.tsx';
import { isHeld } from './hold.ts';
import { PageHeader } from './parts/page-header.tsx';
import { useState } from './parts/state.ts';
import { Toasts, toast } from './parts/toast.tsx';
import type { Place } from './place.ts';
import type { Room, RoomProps } from './room.ts';
import { rooms } from './rooms.ts';
import { type Session, SessionContext } from './session.ts';

export interface ShellProps {
  readonly session: Session;
  readonly api: Client;
  readonly text: RoomProps['text'];
  readonly stream: RoomProps['stream'];
  /** About the appliance, for every room. */
  readonly warning: string | undefined;
  readonly onActive: () => void;
  readonly onLogout: () => Promise<void>;
}

export function Shell({ session, api, text, stream, warning, onActive, onLogout }: ShellProps) {
  const [place, setPlace] = useState(placeAt(window.location));
  const [isOpen, setOpen] = useState(false);
  const here = place ? hrefTo(place.page, place.params, Object.fromEntries(place.query)) : '';

  const navigate = (href: string, how?: 'replace'): void => {
    if (isHeld()) {
      toast('What is on this page would be lost: finish it first.');
      return;
    }
    if (how === 'replace') window.history.replaceState(null, '', href);
    else window.history.pushState(null, '', href);
    const next = placeAt(window.location);
    if (!isSameRoom(place, next)) window.scrollTo(0, 0);
    setOpen(false);
    setPlace(next);
  };

  useEffect(() => {
    document.body.toggleAttribute('data-rooms', true);
    return () => document.body.removeAttribute('data-rooms');
  }, []);
  useEvent('popstate', () => {
    if (isHeld()) window.history.pushState(null, '', here);
    else setPlace(placeAt(window.location));
  });
  useEvent('pointerdown', onActive);
  useEvent('keydown', onActive);
  useEvent('click', (event) => {
    const href = followed(event);
    if (href === undefined) return;
    event.preventDefault();
    navigate(href);
  });

  const room = rooms.find(({ page }) => page === place?.page);
  return (
    <SessionContext.Provider value={session}>
      <a href="#room" data-skip>
        To the content
      </a>
      <header>
        <Brand />
        <Who session={session} onLogout={onLogout} />
        <button
          type="button"
          data-kind="quiet"
          data-menu
          aria-expanded={isOpen ? 'true' : 'false'}
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
      </header>
      <Navigation room={room} session={session} isOpen={isOpen} />
      <main id="room" tabindex={-1}>
        {warning !== undefined && (
          <p role="alert" data-note data-tone="bad">
            {warning}
          </p>
        )}
        {place && room ? (
          <RoomAt
            key={`${place.page} ${JSON.stringify(place.params)}`}
            {...{ room, api, text, stream, session, navigate, place }}
          />
        ) : (
          <PageHeader key="nothing" title="Nothing is here" lead="There is no page at this address." />
        )}
      </main>
      <Toasts />
    </SessionContext.Provider>
  );
}

interface RoomAtProps {
  readonly room: Room;
  readonly place: Place;
  readonly api: Client;
  readonly text: RoomProps['text'];
  readonly stream: RoomProps['stream'];
  readonly session: Session;
  readonly navigate: (href: string, how?: 'replace') => void;
}

function RoomAt({ room, place, api, text, stream, session, navigate }: RoomAtProps) {
  const Component = room.component as (props: object) => Child;
  return <Component {...{ api, text, stream, session, navigate, params: place.params, query: place.query }} />;
}

interface NavigationProps {
  readonly room: Room | undefined;
  readonly session: Session;
  readonly isOpen: boolean;
}

function Navigation({ room, session, isOpen }: NavigationProps) {
  const entries = rooms.filter(({ page, under }) => page === under);
  return (
    <nav aria-label="Console" data-open={isOpen ? '' : undefined}>
      <ul>
        {entries.map(({ page, needs }) => {
          const lacks = needs !== undefined && !session.may.allowsSome(needs);
          return (
            <li key={page}>
              <a
                href={hrefTo(page)}
                aria-current={room?.page === page ? 'page' : room?.under === page ? 'true' : undefined}
                data-lacks={lacks ? '' : undefined}
                title={lacks ? `You would need a flag for ${needs}.` : undefined}
              >
                {consolePages[page].title}
                {lacks && <small> not allowed</small>}
              </a>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function Who({ session, onLogout }: { readonly session: Session; readonly onLogout: () => Promise<void> }) {
  const { user } = session;
  return (
    <div data-who>
      {user ? (
        <a href={hrefTo('about')}>
          <bdi>{user.displayName}</bdi>
        </a>
      ) : (
        <a href={hrefTo('about')}>With an API key</a>
      )}
      <button type="button" data-kind="quiet" onClick={() => void onLogout()}>
        Log out
      </button>
    </div>
  );
}

/** Listens to what happens in the window, with the handler of the last rendering. An effect would leave a moment in which nobody listens. */
function useEvent<K extends keyof WindowEventMap>(name: K, handler: (event: WindowEventMap[K]) => void): void {
  useLayoutEffect(() => {
    window.addEventListener(name, handler);
    return () => window.removeEventListener(name, handler);
  }, [handler]);
}

/** Where a click leads, if it is a plain one on a link to a page of the shell. */
function followed(event: MouseEvent): string | undefined {
  if (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  ) {
    return undefined;
  }
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link?.target !== '' || link.hasAttribute('download') || link.origin !== window.location.origin) return undefined;
  if (link.hash !== '') return undefined;
  const page = placeAt(link)?.page;
  return rooms.some((room) => room.page === page) ? link.pathname + link.search : undefined;
}

function isSameRoom(one: Place | undefined, other: Place | undefined): boolean {
  return one?.page === other?.page && JSON.stringify(one?.params) === JSON.stringify(other?.params);
}
