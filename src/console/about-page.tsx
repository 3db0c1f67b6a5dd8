// AboutPage tells about this service, the user who is logged in and their permissions, and links to further reading.
import { version } from '../version.ts';
import { FlagList } from './flags/flag-list.tsx';
import { baseUrl, guidesUrl } from './navigation.ts';
import type { PageProps } from './page.ts';
import { PageHeader } from './parts/page.tsx';
import { Facts } from './parts/values.tsx';

export function AboutPage({ session: { user, flags } }: PageProps) {
  return (
    <>
      <PageHeader title="About" />
      <section data-panel>
        <h2>This service</h2>
        <Facts
          facts={[
            ['Version', version],
            ['Address', <code key="address">{baseUrl}</code>],
            ['For people', <Elsewhere key="guides" href={guidesUrl} text="Guides" />],
            [
              'For programs',
              <span key="docs">
                <Elsewhere href={`${baseUrl}/docs`} text="API reference" />, and its description as{' '}
                <Elsewhere href={`${baseUrl}/openapi.json`} text="OpenAPI" />
              </span>,
            ],
            [
              'Licence',
              <span key="licence">
                Apache-2.0. <code>kms licenses</code> prints the licences of everything in it.
              </span>,
            ],
          ]}
        />
      </section>
      <section data-panel>
        <h2>You</h2>
        {user ? (
          <>
            <Facts
              facts={[
                ['Name', <bdi key="name">{user.displayName}</bdi>],
                ['User name', <bdi key="username">{user.username}</bdi>],
                ['E-mail', <bdi key="email">{user.email}</bdi>],
                ['Id', <code key="id">{user.id}</code>],
              ]}
            />
            <h3>What you may do</h3>
            <FlagList flags={flags} isMine />
          </>
        ) : (
          <p>
            You logged in with an API key, so this page cannot list what it may do. Create a user for yourself to see
            that.
          </p>
        )}
      </section>
    </>
  );
}

/** A link that opens in a new tab, so that the console stays open. */
function Elsewhere({ href, text }: { readonly href: string; readonly text: string }) {
  return (
    <a href={href} target="_blank" rel="noopener">
      {text}
      <span data-spoken> (in a new tab)</span>
    </a>
  );
}
