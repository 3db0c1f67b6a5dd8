// A new password by a reset link. Whether the link is good is known only when a password comes with it.

import { hrefTo } from './address.ts';
import { appliance, patience } from './appliance.ts';
import { Notice } from './notice.tsx';
import { useState } from './parts/state.ts';
import { PasswordForm } from './password-form.tsx';
import { isRefused, troubleText } from './trouble.ts';

type State = 'open' | 'missing' | 'refused' | 'done';

export function ResetPage({ token }: { readonly token: string | undefined }) {
  const [state, setState] = useState<State>(token === undefined ? 'missing' : 'open');

  const complete = async (password: string): Promise<string | undefined> => {
    try {
      await appliance().completePasswordReset({ token: token ?? '', password }, patience());
      setState('done');
      return undefined;
    } catch (error) {
      // The password met the rules before it was sent, so it is the link.
      if (!isRefused(error)) return troubleText(error);
      setState('refused');
      return undefined;
    }
  };

  switch (state) {
    case 'open':
      return (
        <Notice key="open" title="Choose a new password" isFirst>
          <p>It takes the place of the old one, and whoever is logged in under your name is logged out.</p>
          <PasswordForm action="Change password" onSubmit={complete} />
        </Notice>
      );
    case 'missing':
      return (
        <Notice key="missing" title="Open the link that you were given">
          <p>
            This page needs the whole link. Loading the page again is not enough: open the link itself once more, or{' '}
            <a href={hrefTo('forgot')}>ask for another one</a>.
          </p>
        </Notice>
      );
    case 'refused':
      return (
        <Notice key="refused" title="This link does not work any more" tone="bad">
          <p>
            A link works once, for a short time, and only as long as no newer one takes its place. Your password is as
            it was.
          </p>
          <p>
            <a href={hrefTo('forgot')}>Ask for a new link</a>
          </p>
        </Notice>
      );
    case 'done':
      return (
        <Notice key="done" title="Your password is changed" tone="good">
          <p>From now on you log in with it. All your sessions have ended, so that nobody stays in with the old one.</p>
          <p>
            <a href={hrefTo('home')}>Log in</a>
          </p>
        </Notice>
      );
  }
}
