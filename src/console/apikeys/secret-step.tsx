// The secret of an API key that was just made, which nobody can see again. The page is held until somebody says that they have it.
import { useHold } from '../hold.ts';
import { Button } from '../parts/button.tsx';
import { Secret } from '../parts/secret.tsx';

export interface SecretStepProps {
  readonly keyid: string;
  readonly secret: string;
  readonly onDone: () => void;
}

export function SecretStep({ keyid, secret, onDone }: SecretStepProps) {
  const release = useHold();
  return (
    <section data-panel>
      <h2>The key is made</h2>
      <p>
        Its id is <code>{keyid}</code>. This is its secret, shown this once: the service keeps only a hash of it. Give
        it to the program that needs it, and to nobody else.
      </p>
      <Secret label="Secret of the API key" value={secret} fileName={`${keyid}.key`} />
      <Button
        onClick={() => {
          release();
          onDone();
        }}
      >
        I have it
      </Button>
    </section>
  );
}
