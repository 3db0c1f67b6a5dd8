// ApikeyPage shows one API key, its proofs and its permissions; it enables, disables, changes or deletes it.
import type { AnswerTo, Client } from '../../client/client.ts';
import { FlagList } from '../flags/flag-list.tsx';
import { useAccountUids, useActorNames } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { Confirm, ConfirmByName } from '../parts/dialog.tsx';
import { EditPanel, type FormValues } from '../parts/form.tsx';
import { ActionError, Loaded, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useAction, useAnswer, useState } from '../parts/state.ts';
import { Copyable, Facts, Json, Minute, Moment, Time } from '../parts/values.tsx';
import { ChangeKey } from './change-key.tsx';
import { disableKey, KeysUse } from './disable-key.tsx';
import { KeyAccount, KeyFields, keyIn, Maker, StateTag } from './key-fields.tsx';
import { ProofsPanel } from './proofs-panel.tsx';

export function ApikeyPage({ api, session, navigate, params }: PageProps) {
  const { id = '' } = params;
  const answer = useAnswer((signal) => api.getApiKey({ apikeyid: id, proofs: true }, { signal }), [id]);
  const [isDeleting, setDeleting] = useState(false);
  const [isChanging, setChanging] = useState(false);
  const key = answer.is === 'ready' ? answer.value : undefined;
  const stronger = key && Object.keys(key.flags).find((flag) => key.flags[flag] === true && !session.may.covers(flag));

  const [isDisabling, setDisabling] = useState(false);
  const activate = useAction(async () => {
    await api.updateApiKey({ op: 'merge', apikeyid: id, active: true });
    toast('The key is active.');
    answer.reload();
  });

  return (
    <>
      <PageHeader
        title={key?.name || 'API key'}
        windowTitle={`API key ${key?.name || id}`}
        back={{ href: hrefTo('apikeys'), title: 'API keys' }}
        lead={<code>{id}</code>}
        actions={
          key && (
            <>
              <Button kind="quiet" needs="apikey.update" onClick={() => setChanging(true)}>
                Change…
              </Button>
              <Button
                kind="quiet"
                needs="apikey.update"
                isBusy={activate.isBusy}
                onClick={() => (key.active ? setDisabling(true) : void activate.start())}
              >
                {key.active ? 'Disable…' : 'Activate'}
              </Button>
              <Button kind="danger" needs="apikey.delete" onClick={() => setDeleting(true)}>
                Delete…
              </Button>
            </>
          )
        }
      />
      <ActionError error={activate.error} />
      {stronger !== undefined && (
        <p data-note data-tone="warn">
          This key has the flag <code>{stronger}</code>, which you do not have: the service will not let you change it.
        </p>
      )}
      <Loaded
        of={answer}
        show={(found) => (
          <>
            <About
              api={api}
              apiKey={found}
              onChanged={answer.reload}
              onSave={async (values) => {
                // Reads the key again: the response to a change lacks the time of the change.
                await api.updateApiKey({ op: 'merge', apikeyid: id, ...keyIn(values) });
                answer.set(await api.getApiKey({ apikeyid: id, proofs: true }));
              }}
            />
            {isChanging && (
              <ChangeKey
                key={found.updatedAt}
                api={api}
                apiKey={found}
                mine={session.flags}
                onClose={() => setChanging(false)}
                onChanged={() => {
                  setChanging(false);
                  answer.reload();
                }}
              />
            )}
          </>
        )}
      />
      {isDisabling && key && (
        <Confirm
          key="disable"
          title="Disable this API key?"
          action="Disable the key"
          busy="Disabling…"
          kind="danger"
          onClose={() => setDisabling(false)}
          onConfirm={async () => {
            await disableKey(api, id, answer.reload);
            setDisabling(false);
            answer.reload();
          }}
        >
          <KeysUse keys={[key]} />
        </Confirm>
      )}
      {isDeleting && key && (
        <DeleteKey
          key="delete"
          api={api}
          apiKey={key}
          onClose={() => setDeleting(false)}
          onDeleted={() => {
            toast('The key has been deleted.');
            navigate(hrefTo('apikeys'), 'replace');
          }}
        />
      )}
    </>
  );
}

type ApiKey = AnswerTo<'getApiKey'>;

interface AboutProps {
  readonly api: Client;
  readonly apiKey: ApiKey;
  readonly onChanged: () => void;
  readonly onSave: (values: FormValues) => Promise<void>;
}

function About({ api, apiKey, onChanged, onSave }: AboutProps) {
  const { keyid, name, allowedAddresses, flags, props, proofs, lastUsedAt } = apiKey;
  const uids = useAccountUids();
  const names = useActorNames();
  return (
    <>
      <EditPanel
        title="Details"
        change="Change name, expiry and addresses"
        action="Save"
        needs="apikey.update"
        onSave={onSave}
        saved="The key is saved."
        fields={<KeyFields apiKey={apiKey} />}
        shown={
          <Facts
            key="show"
            facts={[
              ['Name', name === '' ? <span data-quiet>none</span> : <bdi>{name}</bdi>],
              ['Id', <Copyable key="id" text={keyid} what="the id of the key" />],
              ['State', <StateTag key="state" apiKey={apiKey} />],
              ['Expires', <Moment key="expires" at={apiKey.expiresAt} />],
              [
                'Allowed addresses',
                allowedAddresses.length === 0 ? (
                  <span data-quiet>anywhere</span>
                ) : (
                  <code key="from">{allowedAddresses.join(', ')}</code>
                ),
              ],
              ['Account', <KeyAccount key="account" apiKey={apiKey} uids={uids} />],
              ['Created', <Time key="created" at={apiKey.createdAt} />],
              ['Created by', <Maker key="maker" id={apiKey.createdBy} names={names} />],
              ['Changed', <Time key="changed" at={apiKey.updatedAt} />],
              ['Last used', <Minute key="used" at={lastUsedAt} />],
              [
                'Activity',
                <a key="activity" href={hrefTo('activityAbout', { kind: 'apikey', id: keyid })}>
                  Everything about it
                </a>,
              ],
            ]}
          />
        }
      />
      {proofs && <ProofsPanel {...{ api, keyid, proofs, onChanged }} keyUsedAt={lastUsedAt} />}
      <section data-panel>
        <h2>What it may do</h2>
        <FlagList flags={flags} />
      </section>
      <section data-panel>
        <h2>Properties</h2>
        <Json value={props} />
      </section>
    </>
  );
}

interface DeleteKeyProps {
  readonly api: Client;
  readonly apiKey: ApiKey;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

/** Says when the key was last used, so that no program that still needs it is cut off unawares. */
function DeleteKey({ api, apiKey, onClose, onDeleted }: DeleteKeyProps) {
  const { keyid, name } = apiKey;
  return (
    <ConfirmByName
      title={name === '' ? 'Delete this API key?' : `Delete the API key ${name}?`}
      name={name.trim() === '' ? keyid : name.trim()}
      id={keyid}
      action="Delete the key"
      busy="Deleting it…"
      onConfirm={async () => {
        await api.deleteApiKeyById({ keyid });
        onDeleted();
      }}
      onClose={onClose}
    >
      <KeysUse keys={[apiKey]} />
      <p>It cannot be restored. If you are not sure, disable it instead, which can be taken back.</p>
    </ConfirmByName>
  );
}
