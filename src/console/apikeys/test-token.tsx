// TestToken tries a signed token on the proofs of an API key. It tells check by check what each says, and opens no
// session.
import type { Proof } from '../../api/proofs.ts';
import type { AnswerTo, Client } from '../../client/client.ts';
import { Dialog } from '../parts/dialog.tsx';
import { TextArea } from '../parts/fields.tsx';
import { Form } from '../parts/form.tsx';
import { announce } from '../parts/messages.tsx';
import { useState } from '../parts/state.ts';
import { checkText, proofTitle } from './proof-words.ts';

type Tested = AnswerTo<'testProof'>['proofs'][number];

interface TestTokenProps {
  readonly api: Client;
  readonly keyid: string;
  readonly proofs: readonly Proof[];
  readonly onClose: () => void;
}

export function TestToken({ api, keyid, proofs, onClose }: TestTokenProps) {
  const [tested, setTested] = useState<readonly Tested[] | undefined>(undefined);
  return (
    <Dialog title="Test a token" onClose={onClose}>
      <p>Would this token log in as this API key? No session is opened, and a token for single use stays unused.</p>
      <Form
        action="Test it"
        busy="Testing…"
        needs="apikey.read"
        onSubmit={async (values) => {
          const answer = await api.testProof({ keyid, token: values.text('token') });
          setTested(answer.proofs);
          announce(verdictOf(answer.proofs));
        }}
        beside={
          <button type="button" data-kind="quiet" onClick={onClose}>
            Close
          </button>
        }
      >
        <TextArea name="token" label="Token" hint="It is sent to this service and kept nowhere." isRequired isCode />
      </Form>
      {tested && (
        <div key="tested" data-tested>
          <p data-note data-tone={tested.some(({ accepted }) => accepted) ? 'good' : 'bad'}>
            {verdictOf(tested)}
          </p>
          {tested.map((each) => (
            <Verdict key={each.proof} tested={each} proof={proofs.find(({ id }) => id === each.proof)} />
          ))}
        </div>
      )}
    </Dialog>
  );
}

function verdictOf(tested: readonly Tested[]): string {
  if (tested.length === 0) return 'No: this API key has no proof for signed tokens.';
  return tested.some(({ accepted }) => accepted)
    ? 'Yes: the token would log in as this API key.'
    : 'No: no proof of this API key accepts the token.';
}

interface VerdictProps {
  readonly tested: Tested;
  readonly proof: Proof | undefined;
}

function Verdict({ tested: { proof: id, steps }, proof }: VerdictProps) {
  return (
    <section>
      <h3>{proof ? <bdi>{proofTitle(proof)}</bdi> : <code data-any>{id}</code>}</h3>
      <ul>
        {steps.map(({ check, ok, reason }) => (
          <li key={check}>
            <span data-tag data-tone={ok ? 'good' : 'bad'}>
              {ok ? 'passed' : 'failed'}
            </span>{' '}
            {checkText(check)}
            {reason !== undefined && `: ${reason}`}
          </li>
        ))}
      </ul>
    </section>
  );
}
