// One API key: what it may do, switching it off and on, changing it, deleting it.

import type { SafeApiKey } from '../../api/apikey.ts';
import { hrefTo } from '../address.ts';
import { ChangeKey } from '../apikeys/change-key.tsx';
import { DeleteKey } from '../apikeys/delete-key.tsx';
import { FlagList } from '../apikeys/flag-list.tsx';
import { ActiveTag } from '../apikeys/key-columns.tsx';
import { Loaded, useAnswer } from '../parts/answer.tsx';
import { Button } from '../parts/button.tsx';
import { Copyable } from '../parts/copy.tsx';
import { Facts } from '../parts/facts.tsx';
import { Json } from '../parts/json.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useState } from '../parts/state.ts';
import { Time } from '../parts/time.tsx';
import { toast } from '../parts/toast.tsx';
import type { RoomProps } from '../room.ts';
import { troubleText } from '../trouble.ts';

export function ApikeyRoom({ api, session, navigate, params }: RoomProps) {
  const { id = '' } = params;
  const answer = useAnswer((signal) => api.getApiKey({ apikeyid: id }, { signal }), [id]);
  const [isBusy, setBusy] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const [isChanging, setChanging] = useState(false);
  const [trouble, setTrouble] = useState('');
  const key = answer.is === 'ready' ? answer.value : undefined;
  const stronger = key && Object.keys(key.flags).find((flag) => key.flags[flag] === true && !session.may.covers(flag));

  const switchTo = async (active: boolean): Promise<void> => {
    setBusy(true);
    setTrouble('');
    try {
      await api.updateApiKey({ op: 'merge', apikeyid: id, active });
      toast(active ? 'The key is active.' : 'The key is disabled.');
      answer.reload();
    } catch (error) {
      setTrouble(troubleText(error));
    }
    setBusy(false);
  };

  return (
    <>
      <PageHeader
        title="API key"
        windowTitle={`API key ${id}`}
        back={{ href: hrefTo('apikeys'), title: 'API keys' }}
        lead={<code>{id}</code>}
        actions={
          key && (
            <>
              <Button kind="quiet" needs="apikey.update" onClick={() => setChanging(true)}>
                Change…
              </Button>
              <Button kind="quiet" needs="apikey.update" isBusy={isBusy} onClick={() => void switchTo(!key.active)}>
                {key.active ? 'Disable' : 'Activate'}
              </Button>
              <Button kind="danger" needs="apikey.delete" onClick={() => setDeleting(true)}>
                Delete…
              </Button>
            </>
          )
        }
      />
      {trouble !== '' && (
        <p role="alert" data-note data-tone="bad">
          {trouble}
        </p>
      )}
      {stronger !== undefined && (
        <p data-note data-tone="warn">
          This key has the flag <code>{stronger}</code>, which you do not have: the service will refuse changes of yours
          to it.
        </p>
      )}
      <Loaded
        of={answer}
        show={(found) => (
          <>
            <About apiKey={found} />
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
      {isDeleting && key && (
        <DeleteKey
          api={api}
          keyid={id}
          canCheck={session.may.covers('apikey.update')}
          onClose={() => setDeleting(false)}
          onDeleted={() => {
            toast('The key is deleted.');
            navigate(hrefTo('apikeys'), 'replace');
          }}
        />
      )}
    </>
  );
}

function About({ apiKey }: { readonly apiKey: SafeApiKey }) {
  const { keyid, active, references, flags, props, createdAt, updatedAt } = apiKey;
  return (
    <>
      <section data-panel>
        <Facts
          facts={[
            ['Id', <Copyable key="id" text={keyid} what="the id of the key" />],
            ['State', <ActiveTag key="state" active={active} />],
            [
              'Account',
              <a key="account" href={hrefTo('account', { id: references.accountId })}>
                <code>{references.accountId}</code>
              </a>,
            ],
            ['Created', <Time key="created" at={createdAt} />],
            ['Changed', <Time key="changed" at={updatedAt} />],
            [
              'Activity',
              <a key="activity" href={hrefTo('activity', {}, { keyid })}>
                What was done with it
              </a>,
            ],
          ]}
        />
      </section>
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
