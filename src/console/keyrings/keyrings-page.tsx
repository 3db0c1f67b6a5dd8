// KeyringsPage lists the keyrings. Managed keys have a page of their own.
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink } from '../parts/button.tsx';
import { custodyColumn, kemChips, RingList, wrappingColumn } from './ring-list.tsx';
import { keyringSource } from './ring-source.ts';

export function KeyringsPage({ api, session, keeper, navigate, query }: PageProps) {
  return (
    <RingList
      {...{ keeper, navigate, query }}
      page="keyrings"
      source={keyringSource(api, session.may.allows('apikey.read'))}
      lead={
        <>
          A keyring holds the keys that data is encrypted with. Its private key, which unwraps them, is never kept here.
        </>
      }
      actions={
        <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
          New keyring
        </ButtonLink>
      }
      columns={[custodyColumn, wrappingColumn]}
      chips={kemChips}
      empty={
        <>
          <p>There are no keyrings yet. Data is encrypted with the keys of a keyring.</p>
          <p>
            <ButtonLink href={hrefTo('newKeyring')} needs="keyring.create">
              Create the first keyring
            </ButtonLink>
          </p>
        </>
      }
    />
  );
}
