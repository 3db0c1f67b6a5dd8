// The console's entry: which page this is, and what stands on it. A few pages are for people without a session; all others are rooms.
import { type Child, render } from 'hono/jsx/dom';
import type { ConsolePageName } from '../api/console-pages.ts';
import { placeAt } from './address.ts';
import { Console } from './console.tsx';
import { ForgotPage } from './forgot-page.tsx';
import { InvitePage } from './invite-page.tsx';
import { takeToken } from './link-token.ts';
import { ResetPage } from './reset-page.tsx';
import { SetUpPage } from './set-up-page.tsx';

// Its address is relative to where the page was loaded; the browser looks again at each page that follows.
const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
icon?.setAttribute('href', icon.href);
const token = takeToken();

const pages: Partial<Record<ConsolePageName, () => Child>> = {
  invite: () => <InvitePage token={token} />,
  reset: () => <ResetPage token={token} />,
  forgot: () => <ForgotPage />,
};

const name = placeAt(window.location)?.page ?? 'home';
const page = pages[name];
const main = document.querySelector('main');
if (page && main) render(page(), main);
if (!page) {
  const frame = document.createElement('div');
  frame.id = 'console';
  document.querySelector('header')?.remove();
  main?.replaceWith(frame);
  render(name === 'setUp' ? <SetUpPage token={token} /> : <Console />, frame);
}
