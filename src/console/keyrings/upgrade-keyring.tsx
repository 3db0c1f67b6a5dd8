// UpgradeKeyring gives an X25519 keyring a hybrid key pair, generated here, and a new key, as `kms keyring upgrade`
// does. The private key is saved before the request that puts the pair in use; that request can be repeated if it
// fails.
import type { KeyRing } from '../../api/keyrings.ts';
import type { Client } from '../../client/client.ts';
import { isSamePublicKey, publicKeyOf, type RingKeyPair, withHybridKey } from '../../client/ring-keys.ts';
import { KmsError } from '../../errors.ts';
import { FieldProblems } from '../error-text.ts';
import { PrivateKeyFields, useChosenKey, wipe } from '../files/file-job.tsx';
import { CancelButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Form } from '../parts/form.tsx';
import { toast } from '../parts/messages.tsx';
import { useState } from '../parts/state.ts';
import { PrivateKeyStep } from './new-keyring-page.tsx';

interface UpgradeKeyringProps {
  readonly api: Client;
  readonly ring: KeyRing;
  readonly onClose: () => void;
}

interface Made extends RingKeyPair {
  /** Whether it includes the earlier private key. */
  readonly isWhole: boolean;
}

export function UpgradeKeyring({ api, ring, onClose }: UpgradeKeyringProps) {
  const [made, setMade] = useState<Made | undefined>(undefined);
  const chosen = useChosenKey();
  const name = <strong>{ring.displayName}</strong>;
  if (made) {
    return (
      <PrivateKeyStep
        key="save"
        ring={ring}
        privateKey={made.privateKey}
        notice={
          made.isWhole ? (
            <>
              These are the earlier private key of {name} and a hybrid one, made in your browser: the file replaces the
              earlier one. Nothing has changed yet.
            </>
          ) : (
            <>
              This is the hybrid private key of {name}, made in your browser, without the earlier one: add it at the end
              of that one’s file, and <strong>do not replace the file with it</strong>. Nothing has changed yet.
            </>
          )
        }
        fileName={made.isWhole ? `${ring.name}.key` : `${ring.name}.hybrid.key`}
        action="Upgrade the keyring"
        work={() => upgrade(api, ring, made.publicKey)}
        onDone={() => {
          toast('The keyring is hybrid now, and has a new active key.');
          onClose();
        }}
        onCancel={onClose}
      />
    );
  }
  return (
    <Dialog key="ask" title={`Upgrade ${ring.displayName} to hybrid?`} onClose={onClose}>
      <p>
        It gets a hybrid key pair (ML-KEM-768 and X25519) and a new key: a quantum computer will not be able to open
        what is recorded from then on. What was recorded before stays as it was.
      </p>
      <p>
        <strong>What was encrypted before needs the earlier private key as well</strong>: everyone who uses the keyring
        needs both of them from then on. Programs that encrypt with <code>--recipient</code> stop working until they are
        told to accept the new public key.
      </p>
      <Form
        action="Make the private key"
        onSubmit={async (values) => {
          const earlier = await chosen.readPrivateKeys(values);
          try {
            if (earlier.length > 0 && !earlier.some((key) => publicKeyOf(key) === ring.publicKey)) {
              throw new FieldProblems({ privateKey: `This is not the private key of ${ring.displayName}.` });
            }
            setMade({ ...withHybridKey(earlier), isWhole: earlier.length > 0 });
          } finally {
            wipe(earlier);
          }
        }}
        beside={<CancelButton onClick={onClose} />}
      >
        <PrivateKeyFields
          legend="Earlier private key (optional)"
          hint="With it, you get one file with both. Without it, you add the new one to that file yourself."
          onFile={chosen.onKeyFile}
        />
      </Form>
    </Dialog>
  );
}

/**
 * Can be repeated after an interruption, since it skips what is done: first the ring gets the public key, then a new
 * key.
 */
async function upgrade(api: Client, { name: ringname, publicKey: earlier }: KeyRing, publicKey: string): Promise<void> {
  await api.putConfig({ ringname, config: { publicKey, replaces: earlier } }).catch((error) => {
    throw error instanceof KmsError && error.fields?.['config.replaces'] !== undefined ? changedMeanwhile() : error;
  });
  const { ring: now } = await api.getKeyring({ ringname });
  if (!isSamePublicKey(now.publicKey, publicKey)) throw changedMeanwhile();
  const active = await api.getKey({ ringname, keyId: now.activeKey });
  if (active.publicKey !== now.publicKey) await api.rotateKeyring({ ringname });
}

function changedMeanwhile(): FieldProblems {
  return new FieldProblems(
    {},
    'Somebody else has changed its key pair in the meantime. This one is not used: discard it.',
  );
}
