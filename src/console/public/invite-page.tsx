// InvitePage completes an invite: it shows whom it is for, and takes the password that they choose.
import { useEffect } from 'hono/jsx/dom';
import type { AnswerTo } from '../../client/client.ts';
import { errorText, stateOf } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import { announce } from '../parts/messages.tsx';
import { MessagePage, Unreachable } from '../parts/page.tsx';
import { useState } from '../parts/state.ts';
import { appliance, newKey, withTimeout } from '../session.ts';
import { PasswordForm } from './password.tsx';

type User = AnswerTo<'validateInvite'>['user'];
type Refusal = 'missing' | 'expired' | 'invalid';

type State =
  | { readonly is: 'checking' }
  | { readonly is: 'refused'; readonly why: Refusal }
  | { readonly is: 'unreachable'; readonly text: string }
  | { readonly is: 'open'; readonly user: User }
  | { readonly is: 'done'; readonly user: User };

export function InvitePage({ token }: { readonly token: string | undefined }) {
  const [state, setState] = useState<State>(
    token === undefined ? { is: 'refused', why: 'missing' } : { is: 'checking' },
  );

  const check = async (): Promise<void> => {
    setState({ is: 'checking' });
    announce('Checking your invitation.');
    try {
      const { user } = await appliance().validateInvite({ token: token ?? '' }, withTimeout());
      setState({ is: 'open', user });
    } catch (error) {
      setState(refusal(error) ?? { is: 'unreachable', text: errorText(error) });
    }
  };

  const complete = async (password: string): Promise<void> => {
    try {
      const api = appliance({ key: newKey() });
      const { user } = await api.completeInvite({ token: token ?? '', password }, withTimeout());
      setState({ is: 'done', user });
      // This page has no use for the session.
      api.logout().catch(() => {});
    } catch (error) {
      const refused = refusal(error);
      if (!refused) throw error;
      setState(refused);
    }
  };

  useEffect(() => {
    if (token !== undefined) void check();
  }, []);

  switch (state.is) {
    case 'checking':
      return <MessagePage key="checking" title="Checking your invitation…" isFirst />;
    case 'refused':
      return <Refused key="refused" why={state.why} />;
    case 'unreachable':
      return <Unreachable key="unreachable" text={state.text} onRetry={check} />;
    case 'open':
      return <Open key="open" user={state.user} onSubmit={complete} />;
    case 'done':
      return (
        <MessagePage key="done" title="Your password is set" tone="good">
          <p>
            The invitation is complete. From now on you log in as <Name of={state.user.username} /> with the password
            that you have just chosen.
          </p>
          <p>
            <a href={hrefTo('home')}>Log in</a>
          </p>
        </MessagePage>
      );
  }
}

function refusal(error: unknown): State | undefined {
  const state = stateOf(error);
  return state === 'expired' || state === 'invalid' ? { is: 'refused', why: state } : undefined;
}

interface OpenProps {
  readonly user: User;
  readonly onSubmit: (password: string) => Promise<void>;
}

function Open({ user, onSubmit }: OpenProps) {
  return (
    <MessagePage title={`Welcome, ${user.displayName}`}>
      <p>
        You are invited to the key management service as <bdi>{user.email}</bdi>. Choose a password to log in with.
      </p>
      <PasswordForm username={user.username} action="Set password" onSubmit={onSubmit} />
    </MessagePage>
  );
}

function Refused({ why }: { readonly why: Refusal }) {
  if (why === 'missing') {
    return (
      <MessagePage title="Open your invitation link">
        <p>
          This page needs the whole link that you were given. Reloading the page is not enough: open the link itself
          again.
        </p>
      </MessagePage>
    );
  }
  if (why === 'expired') {
    return (
      <MessagePage title="Your invitation has expired" tone="bad">
        <p>Ask the person who invited you to invite you again: you get a new link, and nothing else changes.</p>
      </MessagePage>
    );
  }
  return (
    <MessagePage title="This invitation does not work" tone="bad">
      <p>Its link works once, and only until a newer invitation replaces it.</p>
      <ul>
        <li>
          If you have chosen your password already, just log in with it. <a href={hrefTo('forgot')}>Forgot it?</a>
        </li>
        <li>Otherwise open the whole link of the newest invitation, or ask for a new one.</li>
      </ul>
    </MessagePage>
  );
}

/** A name, which may be in any script and direction. */
function Name({ of }: { readonly of: string }) {
  return (
    <strong>
      <bdi>{of}</bdi>
    </strong>
  );
}
