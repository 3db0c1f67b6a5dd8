// DecideDialog lets an approver approve or deny a request, or break the glass for it. That takes a fresh second factor:
// a passkey, which signs exactly this decision on this request, or a code.
import type { ApprovalRequest } from '../../api/approvals.ts';
import type { AnswerTo, Client, InputOf } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { longestReason, type Verdict, wordText } from '../../model/approval-rules.ts';
import { FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import { CancelButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Choice, Field, TextArea } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { Loaded } from '../parts/messages.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { canUsePasskeys, digestOf, passkeyHindrance, usePasskey } from '../passkeys.ts';
import { actText, missingText } from './act-words.ts';

export type Decision = 'approve' | 'deny' | 'breakGlass';

interface DecideDialogProps {
  readonly api: Client;
  readonly request: ApprovalRequest;
  readonly decision: Decision;
  readonly onClose: () => void;
  readonly onDecided: (request: ApprovalRequest) => void;
}

const words = {
  approve: { title: 'Approve this?', action: 'Approve', busy: 'Approving it…', kind: undefined },
  deny: { title: 'Deny this?', action: 'Deny', busy: 'Denying it…', kind: 'danger' },
  breakGlass: { title: 'Break the glass?', action: 'Break the glass', busy: 'Breaking it…', kind: 'danger' },
} as const satisfies Readonly<Record<Decision, object>>;

const verdictOf: Readonly<Record<Decision, Verdict>> = {
  approve: 'approve',
  deny: 'deny',
  breakGlass: 'break-glass',
};

export function DecideDialog({ api, request, decision, onClose, onDecided }: DecideDialogProps) {
  const answer = useAnswer((signal) =>
    api.getApprovalOptions({ id: request.id, verdict: verdictOf[decision] }, { signal }),
  );
  return (
    <Dialog title={words[decision].title} onClose={onClose}>
      <p>
        <strong>{actText(request)}</strong>
      </p>
      <p>{effectText(request, decision)}</p>
      <Loaded
        of={answer}
        show={(options) => (
          <DecideForm {...{ api, request, decision, options, onClose, onDecided }} onStale={answer.reload} />
        )}
      />
    </Dialog>
  );
}

function effectText(request: ApprovalRequest, decision: Decision): string {
  if (decision === 'deny') return 'The request ends. The requester sees that you denied it, and why.';
  if (decision === 'breakGlass') {
    return 'It can then be done without the approval of the others. All of them are told, and every page shows a warning until somebody acknowledges it.';
  }
  const left = { ...request, given: request.given + 1 };
  return left.given >= left.needed
    ? 'With your approval, the requester can do it.'
    : `With your approval, it still takes ${missingText(left)}.`;
}

type Options = AnswerTo<'getApprovalOptions'>;
type Proof = 'passkey' | 'fresh' | 'code';

const proofLabels: Readonly<Record<Proof, { readonly label: string; readonly hint: string }>> = {
  passkey: {
    label: 'With a passkey',
    hint: 'Your passkey signs your decision on exactly this request, so that anybody can verify it later.',
  },
  fresh: { label: 'With the one just used', hint: 'You used a second factor within the last 5 minutes.' },
  code: { label: 'With a code', hint: 'Six digits from the app on your phone.' },
};

function proofsFor({ fresh, secondFactor, passkeyOptions }: Options): readonly Proof[] {
  const proofs: Proof[] = [];
  if (passkeyOptions && canUsePasskeys) proofs.push('passkey');
  if (fresh) proofs.push('fresh');
  if (secondFactor.includes('totp')) proofs.push('code');
  return proofs;
}

interface DecideFormProps extends DecideDialogProps {
  readonly options: Options;
  /** Called when other options may hold now. */
  readonly onStale: () => void;
}

function DecideForm({ api, request, decision, options, onClose, onDecided, onStale }: DecideFormProps) {
  const proofs = proofsFor(options);
  const [chosen, setChosen] = useState<Proof | undefined>(undefined);
  const proof = proofs.find((each) => each === chosen) ?? proofs[0];
  const { action, busy, kind } = words[decision];
  if (proof === undefined) return <NoProof has={options.secondFactor} onClose={onClose} />;

  const decide = async (values: FormValues): Promise<void> => {
    const reason = values.text('reason');
    const input = {
      id: request.id,
      ...(proof === 'code' && { code: values.text('code') }),
      ...(proof === 'passkey' && { passkey: await signedBy(options, request, verdictOf[decision]) }),
    };
    try {
      if (decision === 'breakGlass') return onDecided(await api.breakGlass({ ...input, reason }));
      const word = { ...input, ...(reason !== '' && { reason }) };
      onDecided(decision === 'approve' ? await api.approveRequest(word) : await api.denyRequest(word));
    } catch (error) {
      // The session's second factor is no longer fresh: the dialog asks for one.
      if (error instanceof KmsError && error.body && 'secondFactor' in error.body) onStale();
      throw error;
    }
  };

  return (
    <Form {...{ action, busy, kind }} onSubmit={decide} beside={<CancelButton onClick={onClose} />}>
      <TextArea
        name="reason"
        label={decision === 'breakGlass' ? 'Why it cannot wait' : 'Why'}
        hint={decision === 'breakGlass' ? 'All approvers read it.' : 'The requester and the other approvers read it.'}
        rows={2}
        most={longestReason}
        isRequired={decision === 'breakGlass'}
      />
      {proofs.length > 1 ? (
        <Choice
          key="choice"
          legend="How do you prove that it is you?"
          name="proof"
          options={proofs.map((value) => ({ value, ...proofLabels[value] }))}
          chosen={proof}
          onChange={setChosen}
        />
      ) : (
        proof !== 'code' && <p key="only">{proofLabels[proof].hint}</p>
      )}
      {proof === 'code' && (
        <Field
          key="code"
          name="code"
          label="Code of your second factor"
          autocomplete="one-time-code"
          hint={proofLabels.code.hint}
          isRequired
        />
      )}
    </Form>
  );
}

/** The passkey's answer. It only ever signs the chosen decision on the statement that the page shows. */
async function signedBy({ passkeyOptions }: Options, { statement }: ApprovalRequest, verdict: Verdict) {
  const digest = await digestOf(statement);
  const challenge = verdict === 'approve' ? digest : await digestOf(wordText(verdict, digest));
  if (passkeyOptions?.challenge !== challenge) {
    throw new FieldProblems({}, 'The service asked for a signature of something else. Nothing was signed.');
  }
  const passkey: NonNullable<InputOf<'approveRequest'>['passkey']> = await usePasskey(passkeyOptions);
  return passkey;
}

interface NoProofProps {
  readonly has: Options['secondFactor'];
  readonly onClose: () => void;
}

function NoProof({ has, onClose }: NoProofProps) {
  return (
    <>
      <p data-note data-tone="warn">
        {has.includes('passkey')
          ? `You have a passkey, but cannot use it here. ${passkeyHindrance ?? ''}`
          : 'This takes a second factor, and you have none yet.'}{' '}
        <a href={hrefTo('me')}>{has.includes('passkey') ? 'Add an app with codes' : 'Add one'}</a>
      </p>
      <CancelButton onClick={onClose} />
    </>
  );
}
