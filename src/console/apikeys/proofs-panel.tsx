// ProofsPanel shows the ways by which programs prove that they are an API key. It adds, disables, enables and removes
// them, and tests a token on them.
import type { Proof } from '../../api/proofs.ts';
import type { Client } from '../../client/client.ts';
import { Button } from '../parts/button.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { ActionError, toast } from '../parts/messages.tsx';
import { useAction, useState } from '../parts/state.ts';
import { type Column, Rows } from '../parts/table.tsx';
import { Ago } from '../parts/values.tsx';
import { AddProof } from './add-proof.tsx';
import { kindText, proofTitle, trustText } from './proof-words.ts';
import { TestToken } from './test-token.tsx';

type Open = { readonly is: 'add' | 'test' } | { readonly is: 'disable' | 'remove'; readonly proof: Proof };

interface ProofsPanelProps {
  readonly api: Client;
  readonly keyid: string;
  readonly proofs: readonly Proof[];
  /** Last use of the API key: its secret has none of its own. */
  readonly keyUsedAt: number | null;
  readonly onChanged: () => void;
}

export function ProofsPanel({ api, keyid, proofs, keyUsedAt, onChanged }: ProofsPanelProps) {
  const [open, setOpen] = useState<Open | undefined>(undefined);
  const close = (): void => setOpen(undefined);
  const done = (text: string): void => {
    toast(text);
    close();
    onChanged();
  };
  const enable = useAction(async ({ id }: Proof) => {
    await api.updateProof({ keyid, proof: id, active: true });
    done('The proof is active.');
  });
  const proof = open && 'proof' in open ? open.proof : undefined;
  return (
    <section data-panel>
      <div data-bar>
        <h2>Proofs</h2>
        <div data-actions>
          <Button kind="quiet" needs="apikey.read" onClick={() => setOpen({ is: 'test' })}>
            Test a token
          </Button>
          <Button kind="quiet" needs="apikey.update" onClick={() => setOpen({ is: 'add' })}>
            Add a proof
          </Button>
        </div>
      </div>
      <p>Ways by which programs prove that they are this key.</p>
      <ActionError error={enable.error} />
      {proofs.length === 0 ? (
        <p key="none" data-note>
          None yet, so nobody can use this key. Add one.
        </p>
      ) : (
        <Rows
          key="some"
          caption="Proofs of this API key"
          columns={columns({
            onEnable: (each) => void enable.start(each),
            onDisable: (each) => setOpen({ is: 'disable', proof: each }),
            onRemove: (each) => setOpen({ is: 'remove', proof: each }),
          })}
          items={proofs}
          keyOf={({ id }) => id}
        />
      )}
      {open?.is === 'add' && (
        <AddProof
          key="add"
          {...{ api, keyid }}
          hasSecret={proofs.some(({ kind }) => kind === 'secret')}
          onClose={close}
          onAdded={() => {
            toast('The proof has been added.');
            onChanged();
          }}
        />
      )}
      {open?.is === 'test' && <TestToken key="test" {...{ api, keyid, proofs }} onClose={close} />}
      {open?.is === 'disable' && proof && (
        <Confirm
          key="disable"
          title={questionOf('Disable', proof)}
          action="Disable it"
          busy="Disabling…"
          kind="danger"
          needs="apikey.update"
          onClose={close}
          onConfirm={async () => {
            await api.updateProof({ keyid, proof: proof.id, active: false });
            done('The proof is disabled.');
          }}
        >
          <ProofUse {...{ proof, proofs, keyUsedAt }} />
        </Confirm>
      )}
      {open?.is === 'remove' && proof && (
        <Confirm
          key="remove"
          title={questionOf('Remove', proof)}
          action="Remove it"
          busy="Removing…"
          kind="danger"
          needs="apikey.update"
          onClose={close}
          onConfirm={async () => {
            await api.removeProof({ keyid, proof: proof.id });
            done('The proof has been removed.');
          }}
        >
          <ProofUse {...{ proof, proofs, keyUsedAt }} />
          <p>This cannot be undone.</p>
        </Confirm>
      )}
    </section>
  );
}

function questionOf(verb: string, { name, kind }: Proof): string {
  if (kind === 'secret') return `${verb} the secret?`;
  return name === '' ? `${verb} this proof?` : `${verb} ${name}?`;
}

interface ProofUseProps extends Pick<ProofsPanelProps, 'proofs' | 'keyUsedAt'> {
  readonly proof: Proof;
}

/** Tells that programs stop, and when they last used the proof. */
function ProofUse({ proof, proofs, keyUsedAt }: ProofUseProps) {
  const { id, kind, lastUsedAt } = proof;
  const isSecret = kind === 'secret';
  const at = isSecret ? keyUsedAt : lastUsedAt;
  const isLast = proof.active && !proofs.some((each) => each.active && each.id !== id);
  return (
    <p>
      Programs that use it are refused at once{isSecret ? '' : ', and their sessions end'}.{' '}
      {at === null ? (
        <span key="never">{isSecret ? 'The key was never used.' : 'It was never used.'}</span>
      ) : (
        <span key="used">
          {isSecret ? 'The key was last used' : 'It was last used'} <Ago at={at} />
          {isSecret && proofs.length > 1 ? ', by this or another proof' : ''}.
        </span>
      )}
      {isLast && <strong key="last"> Without it, nobody can use this key.</strong>}
    </p>
  );
}

interface RowActions {
  readonly onEnable: (proof: Proof) => void;
  readonly onDisable: (proof: Proof) => void;
  readonly onRemove: (proof: Proof) => void;
}

function columns({ onEnable, onDisable, onRemove }: RowActions): readonly Column<Proof>[] {
  return [
    {
      title: 'Proof',
      kind: 'name',
      cell: ({ name, kind }) =>
        name === '' ? (
          kindText(kind)
        ) : (
          <>
            <bdi>{name}</bdi>
            <br />
            <small data-quiet>{kindText(kind)}</small>
          </>
        ),
    },
    { title: 'Trusts', cell: (proof) => <Trusted proof={proof} /> },
    {
      title: 'Last used',
      // A use of the secret is noted at the key alone.
      cell: ({ kind, lastUsedAt }) => (kind === 'secret' ? <span data-quiet>not noted</span> : <Ago at={lastUsedAt} />),
    },
    {
      title: 'State',
      cell: ({ active }) => (
        <span data-tag data-tone={active ? 'good' : 'bad'}>
          {active ? 'active' : 'disabled'}
        </span>
      ),
    },
    {
      title: 'Actions',
      cell: (proof) => (
        <div data-actions>
          {proof.kind !== 'secret' && (
            <Button
              key="switch"
              kind="quiet"
              needs="apikey.update"
              label={`${proof.active ? 'Disable' : 'Enable'} ${proofTitle(proof)}`}
              onClick={() => (proof.active ? onDisable(proof) : onEnable(proof))}
            >
              {proof.active ? 'Disable…' : 'Enable'}
            </Button>
          )}
          <Button
            key="remove"
            kind="quiet"
            needs="apikey.update"
            label={`Remove ${proofTitle(proof)}`}
            onClick={() => onRemove(proof)}
          >
            Remove…
          </Button>
        </div>
      ),
    },
  ];
}

function Trusted({ proof }: { readonly proof: Proof }) {
  const text = trustText(proof);
  if (text === '') return <span data-quiet>not known to this console</span>;
  return proof.kind === 'secret' ? <span data-quiet>{text}</span> : <code data-any>{text}</code>;
}
