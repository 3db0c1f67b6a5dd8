// Console is the whole application: the shell for a session, or the login page. It first looks for this browser's
// session, and then follows logins and logouts in other windows.
import { useEffect, useLayoutEffect } from 'hono/jsx/dom';
import { forgetKeys } from '../client/known-keys.ts';
import { KmsError } from '../errors.ts';
import { SecondFactors } from './me/second-factors.tsx';
import { isHeld } from './navigation.ts';
import { announce, Failed, Loading } from './parts/messages.tsx';
import { Brand, MessagePage } from './parts/page.tsx';
import { useState } from './parts/state.ts';
import { LoginPage } from './public/login-page.tsx';
import { UnsealPage } from './public/unseal-page.tsx';
import {
  type Credential,
  onOtherWindow,
  resume,
  type Session,
  type SessionClient,
  SessionContext,
  sessionClient,
  sessionOf,
  sharedKey,
} from './session.ts';
import { Shell } from './shell.tsx';

type State =
  | { readonly is: 'out'; readonly why?: string }
  /** This browser may have a session; it is being looked up. */
  | { readonly is: 'looking' }
  | { readonly is: 'unknown'; readonly error: unknown }
  | {
      readonly is: 'in';
      readonly credential: Credential;
      readonly session: Session;
      readonly client: SessionClient;
      readonly warning?: string;
      /** The user has to add a second factor first. */
      readonly isEnrolling?: boolean;
    };

const ended = 'Your session has ended. Log in again to continue where you were.';
const endedHeld = 'Your session has ended. Finish and save what is on this page before you leave it.';

interface ConsoleProps {
  readonly credential?: Credential;
  /** There is no user yet. */
  readonly isNew?: boolean;
}

export function Console({ credential: given, isNew = false }: ConsoleProps) {
  const begin = (credential: Credential): State => {
    const client = sessionClient(credential, {
      onEnded() {
        const isLeft = !isHeld();
        if (isLeft) leave(ended);
        else setState((state) => (state.is === 'in' ? { ...state, warning: endedHeld } : state));
        return isLeft;
      },
      onUser: (now) => setState((state) => (state.is === 'in' ? { ...state, session: sessionOf(now) } : state)),
      onEnrol: () => setState((state) => (state.is === 'in' ? { ...state, isEnrolling: true } : state)),
      onOlder: (seen, remembered) =>
        setState((state) => (state.is === 'in' ? { ...state, warning: older(seen, remembered) } : state)),
    });
    return { is: 'in', credential, session: sessionIn(credential), client };
  };
  const [state, setState] = useState<State>(() =>
    given ? begin(given) : { is: sharedKey() === undefined ? 'out' : 'looking' },
  );

  const leave = (why: string): void => {
    announce(why);
    setState({ is: 'out', why });
  };

  const look = async (): Promise<void> => {
    setState({ is: 'looking' });
    try {
      const credential = await resume();
      if (credential) setState(begin(credential));
      else leave(ended);
    } catch (error) {
      setState({ is: 'unknown', error });
    }
  };

  useEffect(() => {
    if (state.is === 'looking') void look();
  }, []);
  useEffect(
    () =>
      onOtherWindow(() => {
        const shared = sharedKey();
        const own = state.is === 'in' && 'key' in state.credential ? state.credential.key : undefined;
        if (shared === own || isHeld() || (state.is === 'in' && own === undefined)) return;
        if (shared === undefined) leave('You are logged out.');
        else void look();
      }),
    [state],
  );

  // Before the next state is shown: no key outlives the session, however that ends.
  const keeper = state.is === 'in' ? state.client.api : undefined;
  useLayoutEffect(() => () => keeper && forgetKeys(keeper), [keeper]);

  if (state.is !== 'in') {
    return (
      <div key="out">
        <header>
          <Brand />
        </header>
        <main>
          {state.is === 'out' && (
            <LoginPage
              key="login"
              why={state.why}
              isNew={isNew && state.why === undefined}
              onLogin={(came) => setState(begin(came))}
            />
          )}
          {state.is === 'looking' && <Loading key="looking" />}
          {state.is === 'unknown' && isSealed(state.error) && <UnsealPage key="sealed" />}
          {state.is === 'unknown' && !isSealed(state.error) && (
            <Failed key="unknown" error={state.error} onRetry={() => void look()} />
          )}
        </main>
      </div>
    );
  }
  const { session, client, warning, isEnrolling } = state;
  const logOut = async (): Promise<void> => {
    await client.end();
    leave('You are logged out.');
  };
  if (isEnrolling) {
    const goOn = (): void => setState({ ...state, isEnrolling: false });
    return <Enrolment key="enrol" {...{ session, client, onLogout: logOut, onAdded: goOn }} />;
  }
  return <Shell key="in" {...{ session, client, warning, onLogout: logOut }} />;
}

function sessionIn(credential: Credential): Session {
  return 'flags' in credential ? sessionOf(undefined, credential.flags) : sessionOf(credential.user);
}

function isSealed(error: unknown): boolean {
  return error instanceof KmsError && error.code === 'sealed';
}

interface EnrolmentProps {
  readonly session: Session;
  readonly client: SessionClient;
  readonly onLogout: () => Promise<void>;
  readonly onAdded: () => void;
}

/** The only page for a user who needs a second factor and has none. */
function Enrolment({ session, client, onLogout, onAdded }: EnrolmentProps) {
  return (
    <SessionContext.Provider value={session}>
      <header>
        <Brand />
      </header>
      <main>
        <MessagePage title="One more step">
          <p>
            With your permissions, a password alone is not enough. To continue, add a second factor: an app on your
            phone that shows codes, or a passkey.
          </p>
          <SecondFactors api={client.api} onAdded={onAdded} />
          <p data-links>
            <button type="button" data-kind="link" onClick={() => void onLogout()}>
              Log out
            </button>
          </p>
        </MessagePage>
      </main>
    </SessionContext.Provider>
  );
}

interface Life {
  readonly epoch: number;
  readonly sequence: number;
}

function older(seen: Life, remembered: Life): string {
  const missing = remembered.sequence - seen.sequence;
  const by =
    seen.epoch !== remembered.epoch
      ? 'it comes from before its last restore'
      : missing > 0
        ? `${missing} changes that this browser knew of are missing`
        : 'it continued from an older state, without changes that this browser knew of';
  return [
    `This service is older than when this browser last saw it: ${by}.`,
    'Unless somebody restored it on purpose, it was set back:',
    'keys that were deleted and credentials that were revoked may be valid again.',
  ].join(' ');
}
