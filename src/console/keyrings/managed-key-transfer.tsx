// Export and import of a managed key. A key crosses the network only wrapped: an exported one to a public key that the
// reader pastes, an imported one to the service's wrapping key, which the dialog shows.
import type { ManagedKey } from '../../api/managed-keys.ts';
import type { AnswerTo, Client } from '../../client/client.ts';
import { FieldProblems } from '../error-text.ts';
import { Button, CancelButton } from '../parts/button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Field, TextArea } from '../parts/fields.tsx';
import { Form } from '../parts/form.tsx';
import { Loaded, toast } from '../parts/messages.tsx';
import { Secret } from '../parts/secret.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { Copyable, Time } from '../parts/values.tsx';

interface TransferProps {
  readonly api: Client;
  readonly ring: ManagedKey;
  readonly onChanged: (key: ManagedKey) => void;
}

export function ManagedKeyTransfer(props: TransferProps) {
  const { name, exportable, latestVersion } = props.ring;
  const [open, setOpen] = useState<'export' | 'import' | undefined>(undefined);
  const close = (): void => setOpen(undefined);
  return (
    <section data-panel>
      <h2>Export and import</h2>
      <p>
        {exportable
          ? 'A copy can leave the service, wrapped to a public key.'
          : 'Only a key that was made as one that may be exported can leave the service, and this one was not.'}{' '}
        A key that you bring becomes the next version.
      </p>
      <div data-actions>
        {exportable && latestVersion > 0 && (
          <Button key="export" kind="quiet" needs={`key.${name}.export`} onClick={() => setOpen('export')}>
            Export…
          </Button>
        )}
        <Button kind="quiet" needs={`key.${name}.import`} onClick={() => setOpen('import')}>
          Import a version…
        </Button>
      </div>
      {open === 'export' && <Export key="exporting" {...props} onClose={close} />}
      {open === 'import' && <Import key="importing" {...props} onClose={close} />}
    </section>
  );
}

interface OpenProps extends TransferProps {
  readonly onClose: () => void;
}

function Export({ api, ring, onClose }: OpenProps) {
  const [exported, setExported] = useState<AnswerTo<'exportManagedKey'> | undefined>(undefined);
  const { name, displayName, latestVersion } = ring;
  if (exported) {
    const { version, wrapped = '', wrapping, format } = exported;
    return (
      <Dialog key="exported" title={`Version ${version} of ${displayName}`} onClose={onClose}>
        <p>
          {wrapping === 'oaep-kwp'
            ? 'An AES-256 key encrypted with RSA-OAEP (SHA-256), and after it the key wrapped under that with AES-KWP.'
            : 'The key encrypted with RSA-OAEP (SHA-256).'}{' '}
          Only the holder of the private key can unwrap it, and then has{' '}
          {format === 'der' ? 'PKCS #8 DER' : 'its bytes'}.
        </p>
        <Secret label="Wrapped key, base64" value={wrapped} fileName={`${name}-v${version}.wrapped.txt`} />
        <div data-actions>
          <button type="button" data-kind="quiet" onClick={onClose}>
            Close
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog key="ask" title={`Export ${displayName}?`} onClose={onClose}>
      <p>Whoever has the private key can then do everything that this key can, without the service.</p>
      <Form
        action="Export the key"
        busy="Exporting…"
        kind="danger"
        needs={`key.${name}.export`}
        onSubmit={async (values) => {
          const typed = values.text('version');
          const version = /^[0-9]{1,9}$/.test(typed) ? Number(typed) : 0;
          if (version < 1 || version > latestVersion) {
            throw new FieldProblems({ version: `Enter a whole number from 1 to ${latestVersion}.` });
          }
          const publicKey = values.text('publicKey');
          setExported(await api.exportManagedKey({ key: name, publicKey, version }));
        }}
        beside={<CancelButton onClick={onClose} />}
      >
        <Field name="version" label="Version" value={String(latestVersion)} isRequired />
        <TextArea
          name="publicKey"
          label="Public key to wrap it to"
          hint="RSA of 2048, 3072 or 4096 bits, as PEM."
          rows={6}
          isCode
          isRequired
        />
      </Form>
    </Dialog>
  );
}

function Import({ api, ring, onChanged, onClose }: OpenProps) {
  const answer = useAnswer((signal) => api.getWrappingKey({}, { signal }));
  const { name, displayName, type } = ring;
  return (
    <Dialog title={`Import a version of ${displayName}`} onClose={onClose}>
      <p>
        Wrap the key, of the type <code>{type}</code>, to this public key: encrypt it with RSA-OAEP (SHA-256), or wrap
        it with AES-KWP under a new AES-256 key and put that, encrypted so, before it. New messages are made with it
        from then on.
      </p>
      <Loaded
        of={answer}
        show={({ publicKey, expiresAt }) => (
          <div data-wrapping-key>
            <Copyable text={publicKey} what="the wrapping key" isLines isWhole />
            <p data-quiet>
              It can be used until <Time at={expiresAt} />.
            </p>
          </div>
        )}
      />
      <Form
        action="Import the key"
        busy="Importing…"
        needs={`key.${name}.import`}
        onSubmit={async (values) => {
          const wrapped = values.text('wrapped').replaceAll(/\s/g, '');
          const { key } = await api.importManagedKey({ key: name, wrapped, isNewVersion: true });
          onChanged(key);
          onClose();
          toast(`It has the new version ${key.latestVersion}.`);
        }}
        beside={<CancelButton onClick={onClose} />}
      >
        <TextArea name="wrapped" label="Wrapped key" hint="In base64." rows={6} isCode isRequired />
      </Form>
    </Dialog>
  );
}
