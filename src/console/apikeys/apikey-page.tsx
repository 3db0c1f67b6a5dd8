// ApikeyPage is one API key: what it may do; it switches it off and on, changes it and deletes it.
import type { SafeApiKey } from '../../api/apikeys.ts';
import type { Client } from '../../client/client.ts';
import { FieldProblems } from '../error-text.ts';
import { FlagList } from '../flags/flag-list.tsx';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button, CancelButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { ActionError, Loaded, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useAction, useAnswer, useState } from '../parts/state.ts';
import { Copyable, Facts, Json, Time } from '../parts/values.tsx';
import { ActiveTag } from './apikeys-page.tsx';
import { ChangeKey } from './change-key.tsx';

export function ApikeyPage({ api, session, navigate, params }: PageProps) {
  const { id = '' } = params;
  const answer = useAnswer((signal) => api.getApiKey({ apikeyid: id }, { signal }), [id]);
  const [isDeleting, setDeleting] = useState(false);
  const [isChanging, setChanging] = useState(false);
  const key = answer.is === 'ready' ? answer.value : undefined;
  const stronger = key && Object.keys(key.flags).find((flag) => key.flags[flag] === true && !session.may.covers(flag));

  const toggle = useAction(async (active: boolean) => {
    await api.updateApiKey({ op: 'merge', apikeyid: id, active });
    toast(active ? 'The key is active.' : 'The key is disabled.');
    answer.reload();
  });

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
              <Button
                kind="quiet"
                needs="apikey.update"
                isBusy={toggle.isBusy}
                onClick={() => void toggle.start(!key.active)}
              >
                {key.active ? 'Disable' : 'Activate'}
              </Button>
              <Button kind="danger" needs="apikey.delete" onClick={() => setDeleting(true)}>
                Delete…
              </Button>
            </>
          )
        }
      />
      <ActionError error={toggle.error} />
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

interface DeleteKeyProps {
  readonly api: Client;
  readonly keyid: string;
  /** Whether it can be asked first whose secret was given. */
  readonly canCheck: boolean;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

/**
 * The service deletes a key for whoever has its secret; without it a key can be disabled, which has the same effect.
 */
function DeleteKey({ api, keyid, canCheck, onClose, onDeleted }: DeleteKeyProps) {
  const remove = async (values: FormValues): Promise<void> => {
    if (values.text('keyid') !== keyid) throw new FieldProblems({ keyid: 'This is not the id of the key.' });
    const key = values.text('secret');
    if (canCheck) {
      // Changes nothing, and answers which key the secret is of.
      const found = await api.updateApiKeyBySecret({ op: 'merge', key });
      if (found.keyid !== keyid)
        throw new FieldProblems({ secret: `This is the secret of another key, ${found.keyid}.` });
    }
    await api.deleteApiKey({ apikey: key });
    onDeleted();
  };
  return (
    <Dialog title="Delete this API key?" onClose={onClose}>
      <p>
        Programs that use it are refused at once, and it cannot be brought back. The service deletes a key only by its
        secret. Whoever does not have it can disable the key, which stops it just as well.
      </p>
      <Form
        action="Delete the key"
        busy="Deleting it…"
        kind="danger"
        onSubmit={remove}
        beside={<CancelButton onClick={onClose} />}
      >
        <Field name="secret" label="Secret of the API key" type="password" isRequired />
        <Field name="keyid" label={`Type ${keyid} to confirm`} isRequired />
      </Form>
    </Dialog>
  );
}
