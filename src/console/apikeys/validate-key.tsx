// Asks whether an API key is valid. The key is in its field alone, and the field is emptied once the answer is there.

import type { Client } from '../../client/client.ts';
import { announce } from '../announce.ts';
import { Field, Form } from '../parts/form.tsx';
import { useState } from '../parts/state.ts';

type Verdict = 'unasked' | 'valid' | 'invalid';

export function ValidateKey({ api }: { readonly api: Client }) {
  const [verdict, setVerdict] = useState<Verdict>('unasked');
  const [turn, setTurn] = useState(0);
  return (
    <section data-panel>
      <h2>Is a key valid?</h2>
      <Form
        key={turn}
        action="Ask"
        needs="apikey.validate"
        onSubmit={async (values) => {
          const { valid } = await api.validateApiKey({ key: values.text('key') });
          setVerdict(valid ? 'valid' : 'invalid');
          setTurn(turn + 1);
          announce(textOf(valid ? 'valid' : 'invalid'));
        }}
      >
        <Field
          name="key"
          label="Secret of the API key"
          type="password"
          hint="It goes to this service and is shown nowhere."
          isRequired
        />
      </Form>
      {verdict !== 'unasked' && (
        <p data-note data-tone={verdict === 'valid' ? 'good' : 'bad'}>
          {textOf(verdict)}
        </p>
      )}
    </section>
  );
}

function textOf(verdict: 'valid' | 'invalid'): string {
  return verdict === 'valid'
    ? 'Valid: the key exists here and is active.'
    : 'Not valid: this service does not have the key, or it is disabled.';
}
