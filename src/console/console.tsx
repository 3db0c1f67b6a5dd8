// The console for those who log in: the login page, and with a session the shell around the rooms. Loading the page again ends what is in
// memory, the session included; each tab has a session of its own.

import type { User } from '../api/user.ts';
import { announce } from './announce.ts';
import { Brand } from './brand.tsx';
import { LoginPage } from './login-page.tsx';
import { useState } from './parts/state.ts';
import { type Session, sessionOf } from './session.ts';
import { type SessionClient, sessionClient } from './session-client.ts';
import { Shell } from './shell.tsx';

export interface Credential {
  /** An access token or an API key. */
  readonly token: string;
  /** Undefined with an API key. */
  readonly user: User | undefined;
}

type State =
  | { readonly is: 'out'; readonly why?: string }
  | { readonly is: 'in'; readonly session: Session; readonly client: SessionClient; readonly warning?: string };

export function Console({ credential }: { readonly credential?: Credential }) {
  const begin = ({ token, user }: Credential): State => {
    const client = sessionClient(token, user === undefined, {
      onEnded: () => leave('Your session has ended. Log in again to go on where you were.'),
      onUser: (now) => setState((state) => (state.is === 'in' ? { ...state, session: sessionOf(now) } : state)),
      onOlder: (seen, remembered) =>
        setState((state) => (state.is === 'in' ? { ...state, warning: older(seen, remembered) } : state)),
    });
    return { is: 'in', session: sessionOf(user), client };
  };
  const [state, setState] = useState<State>(() => (credential ? begin(credential) : { is: 'out' }));

  const leave = (why: string): void => {
    announce(why);
    setState({ is: 'out', why });
  };

  if (state.is === 'out') {
    return (
      <div key="out">
        <header>
          <Brand />
        </header>
        <main>
          <LoginPage why={state.why} onLogin={(given) => setState(begin(given))} />
        </main>
      </div>
    );
  }
  const { session, client, warning } = state;
  return (
    <Shell
      key="in"
      session={session}
      api={client.api}
      text={client.text}
      stream={client.stream}
      warning={warning}
      onActive={client.active}
      onLogout={async () => {
        await client.end();
        leave('You are logged out.');
      }}
    />
  );
}

interface Life {
  readonly epoch: number;
  readonly sequence: number;
}

function older(seen: Life, remembered: Life): string {
  const by =
    seen.epoch === remembered.epoch
      ? `${remembered.sequence - seen.sequence} changes that this browser knew of are missing`
      : 'it comes from before its last restore';
  return `This service is older than when this browser last saw it: ${by}. Unless somebody restored it on purpose, it was set back: keys that were deleted and credentials that were revoked may be valid again.`;
}
