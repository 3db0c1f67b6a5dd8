// The fields of an account.
import type { Account } from '../../api/account.ts';
import { Field, type FormValues, TextArea } from '../parts/form.tsx';
import { JsonField, objectIn } from '../parts/json.tsx';

export function AccountFields({ account }: { readonly account?: Account }) {
  return (
    <>
      <Field
        name="uid"
        label="UID"
        hint="Your own name for it, such as a customer number. Upper and lower case differ."
        value={account?.uid ?? ''}
        isRequired
      />
      <TextArea name="notes" label="Notes" value={account?.notes ?? ''} />
      <JsonField name="props" label="Properties" value={account?.props ?? {}} />
    </>
  );
}

export function accountIn(values: FormValues) {
  return { uid: values.text('uid'), notes: values.text('notes'), props: objectIn(values, 'props') };
}
