// The console's entry: which page this is, and what stands on it.
import { type Child, render } from 'hono/jsx/dom';
import { type ConsolePageName, consolePages } from '../api/console-pages.ts';
import { ForgotPage } from './forgot-page.tsx';
import { HomePage } from './home-page.tsx';
import { InvitePage } from './invite-page.tsx';
import { takeToken } from './link-token.ts';
import { ResetPage } from './reset-page.tsx';

const token = takeToken();

const pages: Readonly<Record<ConsolePageName, () => Child>> = {
  home: () => <HomePage />,
  invite: () => <InvitePage token={token} />,
  reset: () => <ResetPage token={token} />,
  forgot: () => <ForgotPage />,
};

function pageName(): ConsolePageName {
  const { pathname } = window.location;
  const names: readonly ConsolePageName[] = ['invite', 'reset', 'forgot'];
  return names.find((name) => pathname.endsWith(consolePages[name].path)) ?? 'home';
}

const main = document.querySelector('main');
if (main) render(pages[pageName()](), main);
