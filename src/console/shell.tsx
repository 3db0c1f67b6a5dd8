// Shell is the frame around the pages: navigation, the user who is logged in, and warnings for every page. It follows
// links between pages without reloading.
import { type Child, useLayoutEffect } from 'hono/jsx/dom';
import { allowed } from './allowed.ts';
import { GlassBanner } from './approvals/broken-glass.tsx';
import { ApprovalsContext, useApprovalNews } from './approvals/live.ts';
import { NamesContext } from './known-names.ts';
import { Menu } from './menu.tsx';
import { hrefTo, isHeld, placeAt } from './navigation.ts';
import type { Page, PageProps } from './page.ts';
import type { Place } from './page-path.ts';
import { pages } from './pages.ts';
import { Palette } from './palette.tsx';
import { Icon } from './parts/icon.tsx';
import { endToasts, Toasts, toast } from './parts/messages.tsx';
import { Brand, PageHeader } from './parts/page.tsx';
import { useState } from './parts/state.ts';
import { keepPositions, newEntry, restorePosition } from './scrolling.ts';
import { type Session, type SessionClient, SessionContext } from './session.ts';
import { Shortcuts } from './shortcuts.tsx';

interface ShellProps {
  readonly session: Session;
  readonly client: SessionClient;
  /** A warning about the appliance, shown on every page. */
  readonly warning: string | undefined;
  readonly onLogout: () => Promise<void>;
}

export function Shell({ session, client, warning, onLogout }: ShellProps) {
  const [place, setPlace] = useState(placeAt(window.location));
  const [isOpen, setOpen] = useState(false);
  const approvals = useApprovalNews(client);
  const here = place ? hrefTo(place.page, place.params, Object.fromEntries(place.query)) : '';

  const navigate = (href: string, how?: 'replace'): void => {
    if (isHeld()) {
      toast('You would lose what is on this page: finish it first.');
      return;
    }
    if (how === 'replace') window.history.replaceState(window.history.state, '', href);
    else window.history.pushState(newEntry(), '', href);
    const next = placeAt(window.location);
    if (!isSamePage(place, next)) window.scrollTo(0, 0);
    setOpen(false);
    setPlace(next);
  };

  // Must precede the focus on the page's title: without the frame's layout, that would scroll the window.
  useLayoutEffect(() => {
    document.body.toggleAttribute('data-shell', true);
    return () => document.body.removeAttribute('data-shell');
  }, []);
  useLayoutEffect(keepPositions, []);
  useEvent('popstate', () => {
    if (isHeld()) window.history.pushState(newEntry(), '', here);
    else {
      const next = placeAt(window.location);
      if (!isSamePage(place, next)) endToasts();
      setPlace(next);
      restorePosition();
    }
  });
  useEvent('keydown', ({ key }) => {
    if (key === 'Escape' && isOpen) setOpen(false);
  });
  useEvent('pointerdown', client.active);
  useEvent('keydown', client.active);
  useEvent('click', (event) => {
    const href = followed(event);
    if (href === undefined) return;
    event.preventDefault();
    if (!isHeld()) endToasts();
    navigate(href);
  });

  const page = pages.find(({ name }) => name === place?.page);
  return (
    <SessionContext.Provider value={session}>
      <NamesContext.Provider value={client.names}>
        <ApprovalsContext.Provider value={approvals}>
          <a href="#page" data-skip>
            Skip to the content
          </a>
          <header>
            <button
              type="button"
              data-kind="quiet"
              data-menu
              aria-expanded={isOpen ? 'true' : 'false'}
              onClick={() => setOpen(!isOpen)}
            >
              <Icon name="menu" />
              <span>Menu</span>
            </button>
            <Brand />
            <Palette {...allowed(client, session)} names={client.names} session={session} navigate={navigate} />
            <Who session={session} onLogout={onLogout} />
          </header>
          <Menu page={page} session={session} isOpen={isOpen} waiting={approvals.inbox.length} />
          <main id="page" tabindex={-1}>
            {warning !== undefined && (
              <p role="alert" data-note data-tone="bad">
                {warning}
              </p>
            )}
            <GlassBanner broken={approvals.broken} />
            {place && page ? (
              <PageView
                key={`${place.page} ${JSON.stringify(place.params)}`}
                {...{ page, client, session, navigate, place }}
              />
            ) : (
              <PageHeader key="nothing" title="Page not found" lead="There is no page at this address." />
            )}
          </main>
          <Toasts />
          <Shortcuts />
        </ApprovalsContext.Provider>
      </NamesContext.Provider>
    </SessionContext.Provider>
  );
}

interface PageViewProps extends Pick<PageProps, 'session' | 'navigate'> {
  readonly page: Page;
  readonly place: Place;
  readonly client: SessionClient;
}

function PageView({ page, place, client, session, navigate }: PageViewProps) {
  const Component = page.component as (props: object) => Child;
  const { api, polls, stream } = allowed(client, session);
  return (
    <Component
      {...{ api, keeper: client.api, polls, stream, session, navigate, params: place.params, query: place.query }}
    />
  );
}

function Who({ session, onLogout }: { readonly session: Session; readonly onLogout: () => Promise<void> }) {
  const { user } = session;
  return (
    <div data-who>
      {user ? (
        <a href={hrefTo('me')}>
          <bdi>{user.displayName}</bdi>
        </a>
      ) : (
        <a href={hrefTo('about')}>With an API key</a>
      )}
      <button type="button" data-kind="quiet" onClick={() => void onLogout()}>
        <Icon name="leave" />
        <span>Log out</span>
      </button>
    </div>
  );
}

/**
 * Listens to window events with the handler of the last rendering. A layout effect, since a normal one would leave a
 * moment without a listener.
 */
function useEvent<K extends keyof WindowEventMap>(name: K, handler: (event: WindowEventMap[K]) => void): void {
  useLayoutEffect(() => {
    window.addEventListener(name, handler);
    return () => window.removeEventListener(name, handler);
  }, [handler]);
}

/** The target of a plain click on a link to a page of the shell; undefined for any other click. */
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
  const to = placeAt(link)?.page;
  return pages.some(({ name }) => name === to) ? link.pathname + link.search : undefined;
}

function isSamePage(one: Place | undefined, other: Place | undefined): boolean {
  return one?.page === other?.page && JSON.stringify(one?.params) === JSON.stringify(other?.params);
}
