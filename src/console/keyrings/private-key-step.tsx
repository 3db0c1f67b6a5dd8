// The step after a keyring is made: its private key has to be saved before one goes on, since it is nowhere else.

import { useHold } from '../hold.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Check, FieldProblems, Form } from '../parts/form.tsx';
import { Secret } from '../parts/secret.tsx';
import { useState } from '../parts/state.ts';

export interface PrivateKeyStepProps {
  readonly ring: { readonly name: string; readonly displayName: string };
  /** PEM. */
  readonly privateKey: string;
  /** Where it comes from, in words. */
  readonly origin?: string;
  /** Of the rings that the command `kms` keeps private keys of. */
  readonly folder?: 'rings' | 'asym';
  readonly onDone: () => void;
}

export function PrivateKeyStep(props: PrivateKeyStepProps) {
  const { ring, privateKey, origin = 'made in your browser', folder = 'rings', onDone } = props;
  const [isTaken, setTaken] = useState(false);
  const release = useHold();
  return (
    <Dialog title="Save the private key now">
      <p>
        The keyring <strong>{ring.displayName}</strong> is made. This is its private key, {origin}. It is needed to
        encrypt and to decrypt, it is shown this once, and <strong>nobody can get it back for you</strong>.
      </p>
      <Secret
        label={`Private key of ${ring.displayName}`}
        value={privateKey}
        fileName={`${ring.name}.key`}
        onTaken={() => setTaken(true)}
      />
      <p>
        <small>
          The command <code>kms</code> looks for it at{' '}
          <code>
            ~/.config/kms/{folder}/{ring.name}.key
          </code>
          . Let nobody else read the file.
        </small>
      </p>
      <Form
        action="Done"
        onSubmit={async () => {
          if (!isTaken) throw new FieldProblems({ saved: 'Copy the key or save it as a file first.' });
          release();
          onDone();
        }}
      >
        <Check name="saved" label="I have saved the private key where I will find it" isRequired />
      </Form>
    </Dialog>
  );
}
