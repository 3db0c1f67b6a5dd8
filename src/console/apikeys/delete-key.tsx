// Deletes an API key. The service does that for whoever has its secret; without it a key can be disabled, which has the same effect.
import type { Client } from '../../client/client.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Field, FieldProblems, Form, type FormValues } from '../parts/form.tsx';

export interface DeleteKeyProps {
  readonly api: Client;
  readonly keyid: string;
  /** Whether it can be asked first whose secret was given. */
  readonly canCheck: boolean;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeleteKey({ api, keyid, canCheck, onClose, onDeleted }: DeleteKeyProps) {
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
        beside={
          <button type="button" data-kind="quiet" onClick={onClose}>
            Cancel
          </button>
        }
      >
        <Field name="secret" label="Secret of the API key" type="password" isRequired />
        <Field name="keyid" label={`Type ${keyid} to confirm`} isRequired />
      </Form>
    </Dialog>
  );
}
