// SecondFactors shows the user's apps with codes, passkeys and recovery codes. Each is added, removed or renewed in a
// dialog that asks for the password again.
import type { PropsWithChildren } from 'hono/jsx/dom';
import { encode } from 'uqr';
import type { AnswerTo, Client } from '../../client/client.ts';
import { Button, CancelButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { Loaded, toast } from '../parts/messages.tsx';
import { Secret } from '../parts/secret.tsx';
import { type Answer, useAnswer, useState } from '../parts/state.ts';
import { type Column, Rows } from '../parts/table.tsx';
import { Time } from '../parts/values.tsx';
import { canUsePasskeys, makePasskey, passkeyHindrance } from '../passkeys.ts';

type SecondFactor = AnswerTo<'listSecondFactors'>['secondFactors'][number];

type Open =
  | { readonly is: 'app' | 'passkey' | 'codes' }
  | { readonly is: 'remove'; readonly factor: SecondFactor }
  | { readonly is: 'told'; readonly codes: readonly string[] };

interface SecondFactorsProps {
  readonly api: Client;
  readonly answer: Answer<AnswerTo<'listSecondFactors'>>;
  /** Called once a factor was added and its recovery codes were seen. */
  readonly onAdded?: (() => void) | undefined;
}

const kinds: Readonly<Record<SecondFactor['kind'], string>> = { totp: 'App with codes', passkey: 'Passkey' };

/** The second factors alone. */
export function SecondFactors({ api, onAdded }: Omit<SecondFactorsProps, 'answer'>) {
  const answer = useAnswer((signal) => api.listSecondFactors({}, { signal }));
  return <SecondFactorsPanel {...{ api, answer, onAdded }} />;
}

export function SecondFactorsPanel({ api, answer, onAdded }: SecondFactorsProps) {
  const [open, setOpen] = useState<Open | undefined>(undefined);
  const close = (): void => setOpen(undefined);
  const done = (text: string): void => {
    toast(text);
    close();
    answer.reload();
  };
  const added = ({ recoveryCodes }: AnswerTo<'finishTotp'>): void => {
    answer.reload();
    if (recoveryCodes) setOpen({ is: 'told', codes: recoveryCodes });
    else {
      done('The second factor has been added.');
      onAdded?.();
    }
  };
  const columns: readonly Column<SecondFactor>[] = [
    { title: 'Name', kind: 'name', cell: ({ name, kind }) => <bdi>{name || kinds[kind]}</bdi> },
    { title: 'Kind', cell: ({ kind }) => kinds[kind] },
    { title: 'Added', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { title: 'Last used', cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <Time at={lastUsedAt} />) },
    {
      title: 'Remove it',
      cell: (factor) => (
        <Button
          kind="quiet"
          label={`Remove ${factor.name || kinds[factor.kind]}`}
          onClick={() => setOpen({ is: 'remove', factor })}
        >
          Remove…
        </Button>
      ),
    },
  ];
  return (
    <section data-panel>
      <div data-bar>
        <h2>Second factors</h2>
        <div data-actions>
          <Button kind="quiet" onClick={() => setOpen({ is: 'app' })}>
            Add an app
          </Button>
          {canUsePasskeys && (
            <Button kind="quiet" onClick={() => setOpen({ is: 'passkey' })}>
              Add a passkey
            </Button>
          )}
        </div>
      </div>
      <Loaded
        of={answer}
        show={({ secondFactors, recoveryCodes }) =>
          secondFactors.length === 0 ? (
            <p key="none">None yet. With a second factor, a stolen password is not enough to log in as you.</p>
          ) : (
            <div key="some">
              <Rows caption="Your second factors" columns={columns} items={secondFactors} keyOf={({ id }) => id} />
              <p data-count>
                {recoveryCodes === 1 ? '1 recovery code is' : `${recoveryCodes} recovery codes are`} left for when you
                have none of these at hand.{' '}
                <button type="button" data-kind="link" onClick={() => setOpen({ is: 'codes' })}>
                  Create new recovery codes…
                </button>
              </p>
            </div>
          )
        }
      />
      {passkeyHindrance !== undefined && <p data-quiet>{passkeyHindrance}</p>}
      {open?.is === 'app' && <AddApp key="app" {...{ api, onClose: close, onAdded: added }} />}
      {open?.is === 'passkey' && <AddPasskey key="passkey" {...{ api, onClose: close, onAdded: added }} />}
      {open?.is === 'remove' && (
        <Proven
          key="remove"
          title={`Remove ${open.factor.name || kinds[open.factor.kind]}?`}
          action="Remove it"
          kind="danger"
          onClose={close}
          onSubmit={async (values) => {
            await api.removeSecondFactor({ id: open.factor.id, ...proofIn(values) });
            done('The second factor has been removed.');
          }}
        >
          <p>It can no longer be used to log in. With the last one, the recovery codes are removed too.</p>
        </Proven>
      )}
      {open?.is === 'codes' && (
        <Proven
          key="codes"
          title="New recovery codes?"
          action="Create new codes"
          onClose={close}
          onSubmit={async (values) => {
            const { recoveryCodes } = await api.renewRecoveryCodes(proofIn(values));
            answer.reload();
            setOpen({ is: 'told', codes: recoveryCodes });
          }}
        >
          <p>Your earlier codes will then no longer work.</p>
        </Proven>
      )}
      {open?.is === 'told' && (
        <Codes
          key="told"
          codes={open.codes}
          onClose={() => {
            close();
            onAdded?.();
          }}
        />
      )}
    </section>
  );
}

interface AddProps {
  readonly api: Client;
  readonly onClose: () => void;
  readonly onAdded: (added: AnswerTo<'finishTotp'>) => void;
}

function AddApp({ api, onClose, onAdded }: AddProps) {
  const [begun, setBegun] = useState<AnswerTo<'beginTotp'> | undefined>(undefined);
  if (!begun) {
    return (
      <Proven
        key="begin"
        title="Add an app that shows codes"
        action="Continue"
        onClose={onClose}
        onSubmit={async (values) => setBegun(await api.beginTotp({ name: values.text('name'), ...proofIn(values) }))}
      >
        <p>Any app for one-time codes (TOTP) will do. It needs no network, only a correct clock.</p>
        <Field name="name" label="What you call it" hint="Such as: my phone." />
      </Proven>
    );
  }
  const { id, secret, uri } = begun;
  return (
    <Dialog key="finish" title="Add the secret to the app">
      <p>Scan this with the app, or type the secret into it. It is shown only once.</p>
      <QrCode text={uri} label="The secret as a QR code" />
      <Secret label="Secret" value={secret} />
      <Form
        action="Add the app"
        busy="Checking…"
        onSubmit={async (values) => onAdded(await api.finishTotp({ id, code: values.text('code') }))}
        beside={<CancelButton onClick={onClose} />}
      >
        <Field
          name="code"
          label="Code that the app shows now"
          autocomplete="one-time-code"
          hint="Six digits, which prove that the app has the secret."
          isRequired
        />
      </Form>
    </Dialog>
  );
}

function AddPasskey({ api, onClose, onAdded }: AddProps) {
  return (
    <Proven
      title="Add a passkey"
      action="Create a passkey"
      onClose={onClose}
      onSubmit={async (values) => {
        const credential = await makePasskey(await api.beginPasskey(proofIn(values)));
        onAdded(await api.finishPasskey({ credential, name: values.text('name') }));
      }}
    >
      <p>
        It is kept on this device, on another one nearby, or on a security key. One that checks who you are, by a PIN, a
        fingerprint or your face, also lets you in without the password.
      </p>
      <Field name="name" label="What you call it" hint="Such as: my laptop." />
    </Proven>
  );
}

interface ProvenProps {
  readonly title: string;
  readonly action: string;
  readonly kind?: 'danger';
  readonly onClose: () => void;
  readonly onSubmit: (values: FormValues) => Promise<void>;
}

/** A dialog that asks for the password again. */
function Proven(props: PropsWithChildren<ProvenProps>) {
  const { title, action, kind, onClose, onSubmit, children } = props;
  return (
    <Dialog title={title} onClose={onClose}>
      <Form {...{ action, kind, onSubmit }} beside={<CancelButton onClick={onClose} />}>
        {children}
        <Field
          name="currentPassword"
          label="Current password"
          type="password"
          autocomplete="current-password"
          hint="Or a code from one of your second factors."
          isRequired
        />
      </Form>
    </Dialog>
  );
}

/** Decides whether a code or a password was typed: no password looks like a code, because the rules would reject it. */
function proofIn(values: FormValues): { currentPassword: string } | { code: string } {
  const typed = values.exactly('currentPassword');
  const isCode = /^\s*\d{3}\s?\d{3}\s*$|^\s*[0-9a-z]{4}(-[0-9a-z]{4}){3}\s*$/.test(typed);
  return isCode ? { code: typed } : { currentPassword: typed };
}

function Codes({ codes, onClose }: { readonly codes: readonly string[]; readonly onClose: () => void }) {
  return (
    <Dialog title="Your recovery codes">
      <p>
        Each lets you in once instead of a second factor. Keep them where you can find them without your devices, such
        as on paper. They are shown only once.
      </p>
      <Secret label="Recovery codes" value={codes.join('\n')} fileName="recovery-codes.txt" />
      <div data-actions>
        <button type="button" onClick={onClose}>
          I have saved them
        </button>
      </div>
    </Dialog>
  );
}

/** Black on white whatever the colour scheme, since scanners need it. */
function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const { size, data } = encode(text, { border: 4 });
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg data-qr role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={dark.join('')} fill="#000" />
    </svg>
  );
}
