// KeyringsPage lists the keyrings, and the managed keys for those who may list them.
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { ButtonLink } from '../parts/button.tsx';
import { RingList, wrappingColumn } from './ring-list.tsx';
import { keyringSource, managedKeySource } from './ring-source.ts';

export function KeyringsPage({ api, session: { may }, keeper, navigate, query }: PageProps) {
  return (
    <RingList
      {...{ keeper, navigate, query }}
      page="keyrings"
      sources={[keyringSource(api), ...(may.allows('key.list') ? [managedKeySource(api)] : [])]}
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
      columns={[wrappingColumn]}
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
