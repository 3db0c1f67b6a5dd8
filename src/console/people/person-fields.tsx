// The fields that say who a user is.
import type { User } from '../../api/user.ts';
import { Field } from '../parts/form.tsx';

export function PersonFields({ user }: { readonly user?: User }) {
  return (
    <>
      <Field name="firstName" label="First name" isRequired value={user?.firstName ?? ''} />
      <Field name="lastName" label="Last name" isRequired value={user?.lastName ?? ''} />
      <Field name="email" label="E-mail address" type="email" isRequired value={user?.email ?? ''} />
    </>
  );
}
