// AsymPage is for the asym service: it creates a ring, rotates one, or reads a key. The API has no list of these rings,
// so everything is done by name; the activity log tells which were created.
import type { AsymKey } from '../../api/asym.ts';
import { privateKeyPem } from '../../client/ring-keys.ts';
import type { PageProps } from '../page.ts';
import { Field, JsonField } from '../parts/fields.tsx';
import { Form } from '../parts/form.tsx';
import { toast } from '../parts/messages.tsx';
import { objectIn } from '../parts/object-in.ts';
import { PageHeader } from '../parts/page.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { type Column, Rows } from '../parts/table.tsx';
import { Ago, Copyable, Facts, Json } from '../parts/values.tsx';
import { kemText } from '../text.ts';
import { NewKeyringNotice, PrivateKeyStep } from './new-keyring-page.tsx';

interface Made {
  readonly name: string;
  readonly displayName: string;
  readonly activeKey: string;
  readonly privateKey: string;
}

type Props = Pick<PageProps, 'api'>;

export function AsymPage({ api }: PageProps) {
  return (
    <>
      <PageHeader
        title="Asymmetric keyrings"
        lead={
          <>
            Each key of such a keyring is a key pair. These keyrings and their names are separate from the others. Their
            flags begin with <code>asym</code>.
          </>
        }
      />
      <Known api={api} />
      <NewRing api={api} />
      <Rotation api={api} />
      <KeyLookUp api={api} />
    </>
  );
}

interface KnownRing {
  readonly name: string;
  readonly createdAt: number;
}

const mostKnown = 1000;

const knownColumns: readonly Column<KnownRing>[] = [
  { title: 'Name', kind: 'name', cell: ({ name }) => name },
  { title: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

/** The keyrings whose creation is in the activity log, for those who may read it. */
function Known({ api }: Props) {
  const answer = useAnswer(async (signal) => {
    const filters = { action: 'asym.create', valid: true, limit: mostKnown };
    const { data } = await api.searchActivity(filters, { signal });
    return data.filter(({ status }) => status < 400).map(({ ringname, createdAt }) => ({ name: ringname, createdAt }));
  });
  if (answer.is !== 'ready' || answer.value.length === 0) return null;
  return (
    <section data-panel>
      <h2>Created so far</h2>
      <p data-quiet>As far as the activity log tells; the service keeps no list of them.</p>
      <Rows
        caption="Asymmetric keyrings in the activity log"
        columns={knownColumns}
        items={answer.value}
        keyOf={({ name, createdAt }) => `${name} ${createdAt}`}
      />
    </section>
  );
}

function NewRing({ api }: Props) {
  const [made, setMade] = useState<Made | undefined>(undefined);
  return (
    <section data-panel>
      <h2>New asymmetric keyring</h2>
      {made && (
        <PrivateKeyStep
          ring={made}
          folder="asym"
          privateKey={made.privateKey}
          notice={<NewKeyringNotice name={made.displayName} origin="made by the service, which does not keep it" />}
          onDone={() => {
            setMade(undefined);
            toast(`The asymmetric keyring ${made.displayName} has been created. Its active key is ${made.activeKey}.`);
          }}
        />
      )}
      <p data-quiet>The service makes the key pair of such a keyring, and shows the private key only once.</p>
      <Form
        action="Create the keyring"
        busy="Creating it…"
        needs="asym.create"
        onSubmit={async (values) => {
          const input = { name: values.text('name'), keyProps: objectIn(values, 'keyProps') };
          const { ring, privateKey } = await api.createAsymKeyring(input);
          setMade({ ...ring, privateKey: privateKeyPem(privateKey) });
        }}
      >
        <Field name="name" label="Name" isRequired />
        <JsonField name="keyProps" label="Properties of its keys" />
      </Form>
    </section>
  );
}

function Rotation({ api }: Props) {
  const [key, setKey] = useState<AsymKey | undefined>(undefined);
  return (
    <section data-panel>
      <h2>Rotate</h2>
      <Form
        action="Rotate"
        busy="Rotating…"
        onSubmit={async (values) => setKey((await api.rotateAsymKeyring({ ringname: values.text('ringname') })).key)}
      >
        <Field name="ringname" label="Name of the keyring" isRequired />
      </Form>
      {key && <KeyFacts asymKey={key} />}
    </section>
  );
}

function KeyLookUp({ api }: Props) {
  const [key, setKey] = useState<AsymKey | undefined>(undefined);
  return (
    <section data-panel>
      <h2>Read a key</h2>
      <Form
        action="Read the key"
        busy="Reading…"
        onSubmit={async (values) => {
          setKey(undefined);
          setKey(await api.getAsymKey({ ringname: values.text('ringname'), keyId: values.text('keyId') }));
        }}
      >
        <Field name="ringname" label="Name of the keyring" isRequired />
        <Field name="keyId" label="Id of the key" hint="It starts with key_." isRequired />
      </Form>
      {key && <KeyFacts asymKey={key} />}
    </section>
  );
}

function KeyFacts({ asymKey }: { readonly asymKey: AsymKey }) {
  return (
    <div role="status">
      <Facts
        facts={[
          ['Key', <Copyable text={asymKey.id} what="the id of the key" />],
          ['Type', asymKey.type],
          ['Wrapped with', kemText(asymKey.kem, 'whole')],
          ['Wrapped key', <Copyable text={asymKey.keyData.key} what="the wrapped key" />],
          ['Properties', <Json value={asymKey.props} />],
        ]}
      />
    </div>
  );
}
