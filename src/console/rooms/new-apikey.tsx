// Makes an API key: whose it is, what it may do, and its secret, which is told once.
import { useId } from 'hono/jsx/dom';
import { hrefTo } from '../address.ts';
import { isAccountId, useAccountUids, useRingNames } from '../apikeys/known-names.ts';
import { SecretStep } from '../apikeys/secret-step.tsx';
import { draftOf, draftProblems, flagsOf } from '../flags/draft.ts';
import { FlagEditor } from '../flags/flag-editor.tsx';
import { Field, FieldProblems, Form, type FormValues } from '../parts/form.tsx';
import { JsonField, objectIn } from '../parts/json.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useState } from '../parts/state.ts';
import type { RoomProps } from '../room.ts';

interface Made {
  readonly keyid: string;
  readonly secret: string;
}

export function NewApikeyRoom({ api, session, navigate, query }: RoomProps) {
  const id = useId();
  const uids = useAccountUids(api);
  const rings = useRingNames(api);
  const [draft, setDraft] = useState(draftOf({}));
  const [made, setMade] = useState<Made | undefined>(undefined);

  const create = async (values: FormValues): Promise<void> => {
    const accountId = values.text('accountId');
    const props = objectIn(values, 'props');
    const [problem] = draftProblems(draft);
    if (problem !== undefined) throw new FieldProblems({ flags: problem }, `Flags: ${problem}`);
    const { key, keyid } = await api.createApiKey({
      accountId,
      ...(!isAccountId(accountId) && { uid: true }),
      flags: flagsOf(draft),
      props,
    });
    setMade({ keyid, secret: key });
  };

  return (
    <>
      <PageHeader title="New API key" back={{ href: hrefTo('apikeys'), title: 'API keys' }} />
      {made ? (
        <SecretStep
          key="secret"
          keyid={made.keyid}
          secret={made.secret}
          onDone={() => navigate(hrefTo('apikey', { id: made.keyid }), 'replace')}
        />
      ) : (
        <Form key="form" action="Make the key" busy="Making it…" needs="apikey.create" onSubmit={create}>
          <datalist id={id}>
            {uids.map((uid) => (
              <option key={uid} value={uid} />
            ))}
          </datalist>
          <Field
            name="accountId"
            label="Account"
            hint={
              <>
                Its UID or its id. <a href={hrefTo('newAccount')}>Make a new account</a>
              </>
            }
            value={query.get('account') ?? ''}
            list={id}
            isRequired
          />
          <h2>What it may do</h2>
          <FlagEditor draft={draft} onChange={setDraft} mine={session.flags} rings={rings} />
          <details>
            <summary>Properties</summary>
            <JsonField name="props" label="Properties" />
          </details>
        </Form>
      )}
    </>
  );
}
