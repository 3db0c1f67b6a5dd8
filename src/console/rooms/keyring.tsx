// One keyring: what is known of it, its settings, its keys and who uses it; rotating and deleting it.

import type { KeyRing } from '../../api/keyring.ts';
import { hrefTo } from '../address.ts';
import { KeyringKeys } from '../keyrings/keyring-keys.tsx';
import { KeyringSettings } from '../keyrings/keyring-settings.tsx';
import { KeyringUsers } from '../keyrings/keyring-users.tsx';
import { Failed, Loading, useAnswer } from '../parts/answer.tsx';
import { Button, ButtonLink } from '../parts/button.tsx';
import { Copyable } from '../parts/copy.tsx';
import { ConfirmByName } from '../parts/dialog.tsx';
import { Facts } from '../parts/facts.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useState } from '../parts/state.ts';
import { Time } from '../parts/time.tsx';
import { toast } from '../parts/toast.tsx';
import type { RoomProps } from '../room.ts';
import { troubleText } from '../trouble.ts';

export function KeyringRoom({ api, navigate, params }: RoomProps) {
  const name = params.name ?? '';
  const answer = useAnswer((signal) => api.getKeyring({ ringname: name }, { signal }));
  const [isDeleting, setDeleting] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState('');
  const ring = answer.is === 'ready' ? answer.value.ring : undefined;

  const rotate = async (): Promise<void> => {
    setBusy(true);
    setTrouble('');
    try {
      const { key } = await api.rotateKeyring({ ringname: name });
      toast(`The new active key is ${key.id}.`);
      answer.reload();
    } catch (error) {
      setTrouble(troubleText(error));
    }
    setBusy(false);
  };

  return (
    <>
      <PageHeader
        title={ring?.displayName ?? name}
        windowTitle={`Keyring ${ring?.displayName ?? name}`}
        back={{ href: hrefTo('keyrings'), title: 'Keyrings' }}
        actions={
          ring && (
            <>
              <ButtonLink kind="quiet" href={hrefTo('encrypt', {}, { ring: name })} needs={`keyring.${name}.encrypt`}>
                Encrypt a file
              </ButtonLink>
              <Button kind="quiet" needs={`keyring.${name}.rotate`} isBusy={isBusy} onClick={rotate}>
                Rotate
              </Button>
              <Button kind="danger" needs={`keyring.${name}.delete`} onClick={() => setDeleting(true)}>
                Delete…
              </Button>
            </>
          )
        }
      />
      {trouble !== '' && (
        <p role="alert" data-note data-tone="bad">
          {trouble}
        </p>
      )}
      {answer.is === 'loading' && <Loading key="loading" />}
      {answer.is === 'failed' && <Failed key="failed" error={answer.error} onRetry={answer.reload} />}
      {ring && <About key="about" ring={ring} />}
      {ring && <KeyringSettings key="settings" api={api} name={name} />}
      {ring && <KeyringKeys key="keys" api={api} name={name} activeKey={ring.activeKey} />}
      {ring && <KeyringUsers key="users" api={api} name={name} />}
      {isDeleting && ring && (
        <ConfirmByName
          title={`Delete ${ring.displayName}?`}
          name={ring.name}
          action="Delete the keyring"
          busy="Deleting it…"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            const { id } = await api.deleteKeyring({ name: ring.name });
            navigate(hrefTo('keyrings', {}, { deleted: id, name: ring.name }));
          }}
        >
          <p>
            From then on nobody can encrypt with it, nor decrypt what it has encrypted. For 30 days it can be brought
            back under its id; after that its keys are gone for ever.
          </p>
        </ConfirmByName>
      )}
    </>
  );
}

function About({ ring }: { readonly ring: KeyRing }) {
  return (
    <section data-panel>
      <Facts
        facts={[
          ['Name', ring.name],
          ['Id', <Copyable text={ring.id} what="the id of the keyring" />],
          ['Active key', <Copyable text={ring.activeKey} what="the id of the active key" />],
          ['Algorithm', ring.activeAlgorithm],
          ['Public key', <Copyable text={ring.publicKey} what="the public key" />],
          ['Created', <Time at={ring.createdAt} />],
          ['Changed', <Time at={ring.updatedAt} />],
        ]}
      />
    </section>
  );
}
