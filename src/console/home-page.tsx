// What somebody sees who opens the appliance's address in a browser: what this is, and where to go from here.
import { Notice } from './notice.tsx';

export function HomePage() {
  return (
    <Notice title="Keys, and who may use them" isFirst>
      <p>
        This service gives out the keys that files and records are encrypted with, decides who may use them, and keeps
        account of who did. Programs reach it at this address with an API key; administrators use the command{' '}
        <code>kms</code>.
      </p>
      <h2>Invited?</h2>
      <p>Open the link that you were given: it leads to a page of this service where you choose your password.</p>
      <h2>Forgot your password?</h2>
      <p>
        <a href={forgotHref()}>Ask for a link to choose a new one</a>
      </p>
    </Notice>
  );
}

/** The page may be at `/console` and `/console/`. */
function forgotHref(): string {
  return window.location.pathname.endsWith('/') ? 'forgot' : 'console/forgot';
}
