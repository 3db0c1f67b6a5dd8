// Entry point of the console: picks the page by address and renders it. A few pages are public; all others are behind
// the login.
import { type Child, render } from 'hono/jsx/dom';
import type { ConsolePageName } from '../api/console-pages.ts';
import { Console } from './console.tsx';
import { placeAt } from './navigation.ts';
import { InvitePage } from './public/invite-page.tsx';
import { OidcPage, type OidcReturn } from './public/oidc-page.tsx';
import { ForgotPage, ResetPage } from './public/reset-pages.tsx';
import { SetUpPage } from './public/set-up-page.tsx';
import { UnsealPage } from './public/unseal-page.tsx';
import { applyTheme } from './theme.ts';

applyTheme();
// The icon's address is relative to the page first loaded, and browsers resolve it again on each navigation.
const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
icon?.setAttribute('href', icon.href);
const [token] = taken('token');

const pages: Partial<Record<ConsolePageName, () => Child>> = {
  invite: () => <InvitePage token={token} />,
  reset: () => <ResetPage token={token} />,
  forgot: () => <ForgotPage />,
};

const name = placeAt(window.location)?.page ?? 'home';
const main = document.querySelector('main');
/** The appliance's state, sent with the page. */
const state = main?.dataset.state;
const page = state === 'sealed' ? () => <UnsealPage /> : pages[name];
if (page && main) {
  main.replaceChildren();
  render(page(), main);
}
if (!page) {
  const frame = document.createElement('div');
  frame.id = 'console';
  document.querySelector('header')?.remove();
  main?.replaceWith(frame);
  const isNew = state === 'new';
  if (name === 'oidc') render(<OidcPage {...oidcReturn()} />, frame);
  else if (name === 'setUp') render(<SetUpPage token={token} isNew={isNew} />, frame);
  else render(<Console isNew={isNew} />, frame);
}

/** The identity provider's parameters; those that are not used are removed from the address too. */
function oidcReturn(): OidcReturn {
  const [code, state, iss] = taken('code', 'state', 'iss', 'error', 'error_description', 'session_state');
  return { code, state, iss };
}

/**
 * Takes parameters of a link, such as a one-time token, out of the address at once, so that they appear in no history,
 * bookmark or screenshot. They are kept in memory only: reloading the page needs the link again.
 */
function taken(...names: readonly string[]): readonly (string | undefined)[] {
  const { search, pathname, hash } = window.location;
  const query = new URLSearchParams(search);
  const values = names.map((each) => query.get(each) ?? undefined);
  if (values.every((value) => value === undefined)) return values;
  for (const each of names) query.delete(each);
  const rest = query.size > 0 ? `?${query}` : '';
  window.history.replaceState(null, '', pathname + rest + hash);
  return values;
}
