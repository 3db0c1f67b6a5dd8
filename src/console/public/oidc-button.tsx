// OidcButton leads to the identity provider, where one is set up. What ties the login to this tab is kept in it alone,
// and is gone once it was used.
import { useEffect } from 'hono/jsx/dom';
import { errorText } from '../error-text.ts';
import { Button } from '../parts/button.tsx';
import { useAction, useState } from '../parts/state.ts';
import { appliance, withTimeout } from '../session.ts';

const kept = 'kms-oidc';

export interface Begun {
  readonly binding: string;
  /** Where somebody was: path and query. */
  readonly from: string;
}

/** Nothing where no provider is set up, or while it is not known. */
export function OidcButton() {
  const [name, setName] = useState<string | undefined>(undefined);
  useEffect(() => {
    // Without an answer there is the password.
    appliance()
      .describeOidc({}, withTimeout())
      .then(
        (described) => setName(described.name ?? undefined),
        () => {},
      );
  }, []);
  const { isBusy, error, start } = useAction(async () => {
    const { url, binding } = await appliance().startOidc({}, withTimeout());
    const { pathname, search } = window.location;
    sessionStorage.setItem(kept, JSON.stringify({ binding, from: pathname + search } satisfies Begun));
    window.location.assign(url);
  });
  if (name === undefined) return null;
  return (
    <div data-oidc>
      <Button kind="quiet" isBusy={isBusy} onClick={() => void start()}>
        Sign in with {name}
      </Button>
      {error !== undefined && <p role="alert">{errorText(error)}</p>}
    </div>
  );
}

/** Undefined where no login was begun in this tab. */
export function takeBegun(): Begun | undefined {
  const text = sessionStorage.getItem(kept);
  sessionStorage.removeItem(kept);
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
