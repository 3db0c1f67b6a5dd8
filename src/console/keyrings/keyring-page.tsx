// KeyringPage shows one keyring with its settings, keys and users; it rotates or deletes it.
import type { SafeApiKey } from '../../api/apikeys.ts';
import type { AnswerTo, Client } from '../../client/client.ts';
import { keyColumn } from '../apikeys/apikeys-page.tsx';
import { KeyAccount } from '../apikeys/key-fields.tsx';
import { namesRing, ringFlags } from '../flags/draft.ts';
import { useAccountUids } from '../known-names.ts';
import { baseUrl, hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button, ButtonLink, useLack } from '../parts/button.tsx';
import { useAnswer, useBegunList, useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Copyable, Fingerprint } from '../parts/values.tsx';
import { Words } from '../parts/words.tsx';
import { keyringSnippets } from '../snippets/snippet-texts.ts';
import { Snippets } from '../snippets/snippets.tsx';
import { kemText } from '../text.ts';
import { KeyringKeys } from './keyring-keys.tsx';
import { KeyringSettings } from './keyring-settings.tsx';
import { RingPage, ringKinds } from './ring-page.tsx';
import { RingUse } from './ring-use.tsx';
import { hindranceText, ringUsers } from './ring-users.ts';
import { UpgradeKeyring } from './upgrade-keyring.tsx';

export function KeyringPage({ api, session: { may }, navigate, params }: PageProps) {
  const name = params.name ?? '';
  const answer = useAnswer((signal) =>
    api.getKeyring({ ringname: name, config: true, keys: true, apikeys: true }, { signal }),
  );
  const found = answer.is === 'ready' ? answer.value : undefined;
  const [isUpgrading, setUpgrading] = useState(false);
  const mayUpgrade = ['config', 'rotate'].every((each) => may.allows(`keyring.${each}`, name));
  const lacks = useLack('apikey.read');
  return (
    <RingPage
      {...{ name, answer, navigate }}
      kind={ringKinds.keyring}
      actions={(ring) => (
        <>
          <ButtonLink kind="quiet" href={hrefTo('encrypt', {}, { ring: name })} needs={`keyring.${name}.encrypt`}>
            Encrypt a file
          </ButtonLink>
          {ring.kem === 'x25519' && mayUpgrade && (
            <Button kind="quiet" onClick={() => setUpgrading(true)}>
              Upgrade to hybrid…
            </Button>
          )}
        </>
      )}
      rotate={async () => {
        const { key } = await api.rotateKeyring({ ringname: name });
        answer.reload();
        return `The new active key is ${key.id}.`;
      }}
      rotation={() => 'It gets a new key for what is encrypted from now on. What was encrypted before stays readable.'}
      deletion={{
        hindrance: async (ring, signal) => {
          const text = lacks === undefined && hindranceText(await ringUsers(api, ring.name, signal));
          return text ? `${ring.name} cannot be deleted: ${text}` : undefined;
        },
        remove: (ring) => api.deleteKeyring({ name: ring.name }),
        restore: (id) => api.restoreKeyring({ id }),
        loss: 'After that, nobody can encrypt with it or decrypt what it encrypted.',
      }}
      use={(ring) => <RingUse api={api} name={ring.name} />}
      facts={(ring) => [
        ['Active key', <Copyable text={ring.activeKey} what="the id of the active key" />],
        ['Algorithm', ring.activeAlgorithm],
        ['Wrapping', kemText(ring.kem, 'whole')],
        ['Public key', <Copyable text={ring.publicKey} what="the public key" />],
        ['Fingerprint', <Fingerprint of={ring.publicKey} />],
        ring.offlineDecrypt && ['Offline', 'files encrypted to it open with the private key alone'],
        ['Activity', <a href={hrefTo('activityAbout', { kind: 'keyring', id: ring.name })}>Everything about it</a>],
      ]}
      show={(ring) => (
        <>
          {found?.config && (
            <KeyringSettings
              key="settings"
              {...{ api, name }}
              config={found.config}
              onSaved={(config) => {
                answer.set({ ...found, ring, config });
                answer.reload();
              }}
            />
          )}
          <KeyringKeys key="keys" {...{ api, ring }} begun={found?.keys} />
          <Snippets snippets={keyringSnippets({ baseUrl }, ring.name, 'both')} privateKeyFile={`${ring.name}.key`} />
          <KeyringUsers key="users" {...{ api, name }} begun={found?.apikeys} />
          {isUpgrading && (
            <UpgradeKeyring
              {...{ api, ring }}
              onClose={() => {
                setUpgrading(false);
                answer.reload();
              }}
            />
          )}
        </>
      )}
    />
  );
}

interface KeyringUsersProps {
  readonly api: Client;
  readonly name: string;
  /** Those that came with the keyring. */
  readonly begun: AnswerTo<'getKeyring'>['apikeys'];
}

/** API keys whose flags name the keyring, and those that a wildcard admits. */
function KeyringUsers(props: KeyringUsersProps) {
  const lacks = useLack('apikey.read');
  return (
    <section data-panel>
      <h2>Used by</h2>
      {lacks === undefined ? <List {...props} /> : <p data-quiet>{lacks}</p>}
    </section>
  );
}

function List({ api, name, begun }: KeyringUsersProps) {
  const list = useBegunList(begun, (page, signal) =>
    api.searchKeyringApiKeys({ keyringname: name, wildcard: true, ...page }, { signal }),
  );
  const uids = useAccountUids();
  const columns: readonly Column<SafeApiKey>[] = [
    keyColumn,
    { title: 'Account', cell: (apiKey) => <KeyAccount apiKey={apiKey} uids={uids} /> },
    {
      title: 'By',
      cell: ({ flags }) => {
        const names = ringFlags(flags, name);
        return (
          <>
            {namesRing(names, name) ? '' : <span data-tag>wildcard</span>} <Words text={names.join(', ')} />
          </>
        );
      },
    },
  ];
  return (
    <>
      <p data-quiet>
        API keys whose flags name the keyring, and those that a wildcard lets in. A keyring cannot be deleted while
        another active key names it.
      </p>
      <DataTable
        caption={`API keys that may use ${name}`}
        columns={columns}
        list={list}
        keyOf={({ keyid }) => keyid}
        fold={10}
        empty={<p>No API keys may use this keyring.</p>}
      />
    </>
  );
}
