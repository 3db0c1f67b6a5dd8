// AddProof is the dialog that adds a proof to an API key. The secret that a proof may have is shown once, in the same
// dialog.
import type { AnswerTo, Client } from '../../client/client.ts';
import { useHold } from '../navigation.ts';
import { Button, CancelButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Choice, Field, Select } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { Secret } from '../parts/secret.tsx';
import { useState } from '../parts/state.ts';
import { Copyable } from '../parts/values.tsx';
import { CertificateFields, certificatesIn } from './certificate-fields.tsx';
import { TokenFields } from './token-fields.tsx';
import { isPlatform, type Platform, platforms, trustIn } from './token-trust.ts';

type NewProof = AnswerTo<'addProof'>;
type Kind = 'jwt' | 'certificate' | 'aws' | 'secret';

interface AddProofProps {
  readonly api: Client;
  readonly keyid: string;
  /** An API key has one secret at most. */
  readonly hasSecret: boolean;
  readonly onClose: () => void;
  /** Called once it is added, while its secret may still be shown. */
  readonly onAdded: () => void;
}

const jwt = {
  value: 'jwt',
  label: 'Signed tokens',
  hint: 'A platform such as GitHub, GitLab or Kubernetes says which program it is. There is no secret to keep.',
} as const;
const certificate = {
  value: 'certificate',
  label: 'Client certificate',
  hint: 'The program shows it in its TLS connections to this service.',
} as const;
const aws = {
  value: 'aws',
  label: 'AWS access key',
  hint: 'For software that signs its requests as for AWS KMS. Its secret is shown once.',
} as const;
const secret = {
  value: 'secret',
  label: 'Secret',
  hint: 'For anything that can send a header. It is shown once.',
} as const;

export function AddProof({ api, keyid, hasSecret, onClose, onAdded }: AddProofProps) {
  const [kind, setKind] = useState<Kind>('jwt');
  const [platform, setPlatform] = useState<Platform>('github');
  const [made, setMade] = useState<NewProof | undefined>(undefined);
  if (made) return <SecretOfProof key="told" {...{ keyid, made, onClose }} />;

  const add = async (values: FormValues): Promise<void> => {
    const name = values.text('name');
    const trust = kind === 'jwt' ? trustIn(platform, values) : kind === 'certificate' ? certificatesIn(values) : {};
    const proof = await api.addProof({ keyid, kind, ...(name !== '' && { name }), ...trust });
    onAdded();
    if (hasSecretParts(proof)) setMade(proof);
    else onClose();
  };

  return (
    <Dialog key="ask" title="Add a proof" onClose={onClose}>
      <Form
        action="Add the proof"
        busy="Adding it…"
        needs="apikey.update"
        onSubmit={add}
        beside={<CancelButton onClick={onClose} />}
      >
        <Choice<Kind>
          legend="How does the program prove that it is this key?"
          name="kind"
          options={[jwt, certificate, aws, ...(hasSecret ? [] : [secret])]}
          chosen={kind}
          onChange={setKind}
        />
        {kind !== 'secret' && <Field key="name" name="name" label="Name" hint="Such as: CI of payroll." />}
        {kind === 'jwt' && (
          <Select
            key="platform"
            name="platform"
            label="Who signs the tokens?"
            options={platforms}
            value={platform}
            onChange={(next) => isPlatform(next) && setPlatform(next)}
          />
        )}
        {kind === 'certificate' && <CertificateFields key="certificate" />}
        {kind === 'jwt' && <TokenFields key={`fields-${platform}`} platform={platform} />}
      </Form>
    </Dialog>
  );
}

function hasSecretParts({ key, secretAccessKey, privateKey }: NewProof): boolean {
  return [key, secretAccessKey, privateKey].some((part) => part !== undefined);
}

interface SecretOfProofProps {
  readonly keyid: string;
  readonly made: NewProof;
  readonly onClose: () => void;
}

/** Stays open, and holds the page, until the user confirms having saved the secret. */
function SecretOfProof({ keyid, made, onClose }: SecretOfProofProps) {
  const { key, accessKeyId, secretAccessKey, privateKey, certificate: issued, caCertificate } = made;
  const release = useHold();
  return (
    <Dialog title="The proof has been added">
      <p>Its secret is shown only once. Give it only to the program that needs it.</p>
      {accessKeyId !== undefined && (
        <p key="id">
          Access key id: <Copyable text={accessKeyId} what="the access key id" isLong />
        </p>
      )}
      {key !== undefined && <Secret key="key" label="Secret of the API key" value={key} fileName={`${keyid}.key`} />}
      {secretAccessKey !== undefined && <Secret key="aws" label="Secret access key" value={secretAccessKey} />}
      {privateKey !== undefined && (
        <Secret key="private" label="Private key" value={privateKey} fileName="client.key" />
      )}
      {issued !== undefined && <Secret key="issued" label="Certificate" value={issued} fileName="client.crt" />}
      {caCertificate !== undefined && (
        <Secret key="ca" label="Certificate of the authority" value={caCertificate} fileName="ca.crt" />
      )}
      <div data-actions>
        <Button
          onClick={() => {
            release();
            onClose();
          }}
        >
          I have it
        </Button>
      </div>
    </Dialog>
  );
}
