// Makes a keyring. Its key pair is made here, in the browser: the public half goes to the appliance, the private half to whoever makes the
// ring, and nowhere else.

import type { KeyRing } from '../../api/keyring.ts';
import { isPublicKey } from '../../client/private-key.ts';
import { generateRingKey } from '../../client/ring-key-pair.ts';
import { hrefTo } from '../address.ts';
import { PrivateKeyStep } from '../keyrings/private-key-step.tsx';
import { Choice } from '../parts/choice.tsx';
import { Field, FieldProblems, Form, type FormValues, TextArea } from '../parts/form.tsx';
import { JsonField, objectIn } from '../parts/json.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useState } from '../parts/state.ts';
import { toast } from '../parts/toast.tsx';
import type { RoomProps } from '../room.ts';

interface Made {
  readonly ring: KeyRing;
  readonly privateKey: string;
}

const ringName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export function NewKeyringRoom({ api, navigate }: RoomProps) {
  const [pair, setPair] = useState<'here' | 'elsewhere'>('here');
  const [made, setMade] = useState<Made | undefined>(undefined);
  const open = ({ name }: KeyRing): void => navigate(hrefTo('keyring', { name }), 'replace');

  const create = async (values: FormValues): Promise<void> => {
    const name = values.text('name');
    if (!ringName.test(name)) throw new FieldProblems({ name: nameRule });
    const fields = { name, props: objectIn(values, 'props'), keyProps: objectIn(values, 'keyProps') };
    if (pair === 'elsewhere') {
      const publicKey = values.text('publicKey');
      if (!isPublicKey(publicKey)) throw new FieldProblems({ publicKey: 'This is no X25519 public key.' });
      const { ring } = await api.createKeyring({ ...fields, publicKey });
      toast(`The keyring ${ring.displayName} is made.`);
      open(ring);
      return;
    }
    const { publicKey, privateKey } = generateRingKey();
    const { ring } = await api.createKeyring({ ...fields, publicKey });
    setMade({ ring, privateKey });
  };

  return (
    <>
      <PageHeader title="New keyring" back={{ href: hrefTo('keyrings'), title: 'Keyrings' }} />
      {made && <PrivateKeyStep {...made} onDone={() => open(made.ring)} />}
      <Form action="Make the keyring" busy="Making it…" needs="keyring.create" onSubmit={create}>
        <Field name="name" label="Name" hint={nameRule} isRequired />
        <Choice
          legend="Key pair"
          name="pair"
          chosen={pair}
          onChange={setPair}
          options={[
            {
              value: 'here',
              label: 'Make it in this browser',
              hint: 'The private key is shown to you once, to be saved. It does not leave this page.',
            },
            {
              value: 'elsewhere',
              label: 'I have made one elsewhere',
              hint: 'Give its public key; the private key stays where it is.',
            },
          ]}
        />
        {pair === 'elsewhere' && (
          <TextArea
            name="publicKey"
            label="Public key"
            hint="X25519, as PEM, base64 of SPKI DER, or base64 of the 32 bytes."
            isRequired
            isCode
          />
        )}
        <details>
          <summary>Properties</summary>
          <JsonField name="props" label="Properties of the keyring" />
          <JsonField name="keyProps" label="Properties of its keys" />
        </details>
      </Form>
    </>
  );
}

const nameRule = 'Letters, digits, dots, dashes and underscores; up to 128 characters, the first a letter or digit.';
