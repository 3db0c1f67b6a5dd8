// OidcPage is the redirect target of the identity provider: it finishes the login that was started in this tab.
import { useEffect } from 'hono/jsx/dom';
import { Console } from '../console.tsx';
import { errorText } from '../error-text.ts';
import { hrefTo, placeAt } from '../navigation.ts';
import { announce } from '../parts/messages.tsx';
import { Brand, MessagePage } from '../parts/page.tsx';
import { useState } from '../parts/state.ts';
import { type Credential, signIn, withTimeout } from '../session.ts';
import { type Begun, takeBegun } from './oidc-button.tsx';

/** Parameters that the provider added to the address. */
export interface OidcReturn {
  readonly code: string | undefined;
  readonly state: string | undefined;
  readonly iss: string | undefined;
}

type State =
  | { readonly is: 'finishing' }
  | { readonly is: 'refused'; readonly text: string }
  | { readonly is: 'in'; readonly credential: Credential };

const notBegun = 'A login starts at the login page, in the same window. Reloading this page is not enough.';
const notMeant = 'The identity provider did not let you in.';

export function OidcPage({ code, state: returned, iss }: OidcReturn) {
  const [state, setState] = useState<State>({ is: 'finishing' });

  const finish = async (): Promise<void> => {
    const begun = takeBegun();
    if (returned === undefined || !begun) return setState({ is: 'refused', text: notBegun });
    if (code === undefined) return setState({ is: 'refused', text: notMeant });
    announce('Logging in.');
    try {
      const input = { code, state: returned, binding: begun.binding, ...(iss !== undefined && { iss }) };
      const credential = await signIn((api) => api.finishOidc(input, withTimeout()));
      window.history.replaceState(null, '', placeBefore(begun));
      setState({ is: 'in', credential });
    } catch (error) {
      setState({ is: 'refused', text: errorText(error) });
    }
  };

  useEffect(() => void finish(), []);

  if (state.is === 'in') return <Console key="in" credential={state.credential} />;
  return (
    <div key="out">
      <header>
        <Brand />
      </header>
      <main>
        {state.is === 'finishing' ? (
          <MessagePage key="finishing" title="Logging in…" isFirst />
        ) : (
          <MessagePage key="refused" title="You are not logged in" tone="bad">
            <p>{state.text}</p>
            <p>
              <a href={hrefTo('home')}>Go to the login page</a>
            </p>
          </MessagePage>
        )}
      </main>
    </div>
  );
}

/** The console page that the login was started on, or else the start page. */
function placeBefore({ from }: Begun): string {
  const url = new URL(from, window.location.origin);
  const place = url.origin === window.location.origin ? placeAt(url) : undefined;
  return place && place.page !== 'oidc' ? url.pathname + url.search : hrefTo('home');
}
