// Changes who a user is.
import type { User } from '../../api/user.ts';
import type { Client } from '../../client/client.ts';
import { Form } from '../parts/form.tsx';
import { JsonField, objectIn } from '../parts/json.tsx';
import { PersonFields } from './person-fields.tsx';

export interface UserFormProps {
  readonly api: Client;
  readonly user: User;
  readonly onSaved: (user: User) => void;
  readonly onClose: () => void;
}

export function UserForm({ api, user, onSaved, onClose }: UserFormProps) {
  return (
    <Form
      action="Save"
      busy="Saving…"
      onSubmit={async (values) =>
        onSaved(
          await api.updateUser({
            username: user.username,
            email: values.text('email'),
            firstName: values.text('firstName'),
            lastName: values.text('lastName'),
            props: objectIn(values, 'props'),
          }),
        )
      }
      beside={
        <button type="button" data-kind="quiet" onClick={onClose}>
          Cancel
        </button>
      }
    >
      <PersonFields user={user} />
      <JsonField name="props" label="Properties" value={user.props} />
    </Form>
  );
}
