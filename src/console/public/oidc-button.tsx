// OidcButton starts a login with the identity provider, if one is configured. The data that ties the login to this tab
// is kept in the tab's storage only, and removed on use.
import { useEffect } from 'hono/jsx/dom';
import { errorText } from '../error-text.ts';
import { Button } from '../parts/button.tsx';
import { useAction, useState } from '../parts/state.ts';
import { appliance, withTimeout } from '../session.ts';

const kept = 'kms-oidc';

export interface Begun {
  readonly binding: string;
  /** The page that the user was on: path and query. */
  readonly from: string;
}

/** Renders nothing if no provider is configured, or until that is known. */
export function OidcButton() {
  const [name, setName] = useState<string | undefined>(undefined);
  useEffect(() => {
    // If there is no response, the password is still there.
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

/** Undefined if no login was started in this tab. */
export function takeBegun(): Begun | undefined {
  const text = sessionStorage.getItem(kept);
  sessionStorage.removeItem(kept);
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
