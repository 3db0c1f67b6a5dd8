// Encrypts a file in the browser: the key comes from the service, the bytes stay here. The result is what `kms encrypt` makes.
import { useId, useRef } from 'hono/jsx/dom';
import type { InputOf } from '../../client/client.ts';
import { type EncryptAnswer, encryptStream } from '../../client/file-streams.ts';
import { hrefTo } from '../address.ts';
import { useRingNames } from '../apikeys/known-names.ts';
import { MemoryNote } from '../file/memory-note.tsx';
import { PrivateKeyFields, useChosenKey } from '../file/private-key-fields.tsx';
import { encryptedName } from '../file/transfer.ts';
import { useWork } from '../file/use-work.ts';
import { WorkView } from '../file/work-view.tsx';
import { FileField } from '../parts/file-field.tsx';
import { Check, Field, FieldProblems, Form, type FormValues } from '../parts/form.tsx';
import { JsonField, objectIn } from '../parts/json.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useState } from '../parts/state.ts';
import type { RoomProps } from '../room.ts';

type AssetInput = NonNullable<InputOf<'encrypt'>['asset']>;

export function EncryptRoom({ api, session, query }: RoomProps) {
  const id = useId();
  const rings = useRingNames(api);
  const file = useRef<File>(null);
  const privateKey = useChosenKey();
  const [withAsset, setWithAsset] = useState(false);
  const [work, run] = useWork<EncryptAnswer>();

  const submit = async (values: FormValues): Promise<void> => {
    const ring = values.text('ring');
    if (!session.may.allows('keyring.encrypt', ring)) {
      throw new FieldProblems({ ring: `You would need the flag keyring.${ring.toLowerCase()}.encrypt.` });
    }
    const chosen = file.current;
    if (!chosen) throw new FieldProblems({ file: 'Choose the file first.' });
    const key = await privateKey.read(values);
    const asset = withAsset ? assetIn(values) : undefined;
    try {
      await run({
        file: chosen,
        name: encryptedName(chosen.name),
        stream: (signal) => encryptStream({ client: api, ring, privateKey: key, signal, ...(asset && { asset }) }),
      });
    } finally {
      key.fill(0);
    }
  };

  return (
    <>
      <PageHeader
        title="Encrypt a file"
        lead={
          <>
            The file is encrypted in this page and goes nowhere: the service only gives the key.{' '}
            <code>kms decrypt</code> opens the result, and so does this console.
          </>
        }
      />
      <MemoryNote />
      <Form action="Encrypt and save" busy="Encrypting…" onSubmit={submit}>
        <datalist id={id}>
          {rings.map((ring) => (
            <option key={ring} value={ring} />
          ))}
        </datalist>
        <FileField
          name="file"
          label="File"
          isRequired
          onFile={(chosen) => {
            file.current = chosen ?? null;
          }}
        />
        <Field name="ring" label="Ring" value={query.get('ring') ?? ''} list={id} isRequired />
        <PrivateKeyFields onFile={privateKey.onFile} />
        <Check
          name="withAsset"
          label="Attach an asset"
          hint="A record that the service keeps and signs, and whose verdict whoever decrypts the file is told."
          isOn={withAsset}
          onChange={setWithAsset}
        />
        {withAsset && (
          <div key="asset">
            <JsonField name="data" label="Data of the asset" />
            <Field name="parents" label="Parents" hint="Ids of assets, apart by blanks." />
            <Field name="assetId" label="Asset to update" hint="Its id; nothing for a new one." />
          </div>
        )}
      </Form>
      <WorkView
        work={work}
        doing="Encrypting"
        show={({ asset }) =>
          asset && (
            <p>
              The file carries the asset{' '}
              <a href={hrefTo('asset', { id: asset.id })}>
                <code>{asset.id}</code>
              </a>
              .
            </p>
          )
        }
      />
    </>
  );
}

/** With an asset that is updated, only what was given. */
function assetIn(values: FormValues): AssetInput {
  const assetId = values.text('assetId');
  const parents = values
    .text('parents')
    .split(/[\s,]+/)
    .filter((parent) => parent !== '');
  const hasData = values.text('data') !== '';
  return {
    ...(assetId !== '' && { assetId }),
    ...((hasData || assetId === '') && { data: objectIn(values, 'data') }),
    ...(parents.length > 0 && { parents }),
  };
}
