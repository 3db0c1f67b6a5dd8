import type { InputOf } from '../../client/client.ts';
import { type EncryptAnswer, encryptStream } from '../../client/file-streams.ts';
import { FieldProblems } from '../error-text.ts';
import { useRingNames } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Check, Field, FileField, JsonField } from '../parts/fields.tsx';
import { Form, type FormValues, objectIn } from '../parts/form.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useState } from '../parts/state.ts';
import { FileJobView, MemoryNote, PrivateKeyFields, useChosen, useFileJob } from './file-job.tsx';
import { encryptedName } from './saving.ts';

type AssetInput = NonNullable<InputOf<'encrypt'>['asset']>;

export function EncryptPage({ api, session, query }: PageProps) {
  const rings = useRingNames(api);
  const chosen = useChosen();
  const [withAsset, setWithAsset] = useState(false);
  const [job, run] = useFileJob<EncryptAnswer>();

  const submit = async (values: FormValues): Promise<void> => {
    const ring = values.text('ring');
    if (!session.may.allows('keyring.encrypt', ring)) {
      throw new FieldProblems({ ring: `You would need the flag keyring.${ring.toLowerCase()}.encrypt.` });
    }
    const { file, privateKey } = await chosen.read(values);
    const asset = withAsset ? assetIn(values) : undefined;
    await run({
      file,
      privateKey,
      name: encryptedName(file.name),
      stream: (signal) =>
        encryptStream({ client: api, ring, privateKey, keepKeys: false, signal, ...(asset && { asset }) }),
    });
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
        <FileField name="file" label="File" isRequired onFile={chosen.onFile} />
        <Field name="ring" label="Keyring" value={query.get('ring') ?? ''} proposals={rings} isRequired />
        <PrivateKeyFields onFile={chosen.onKeyFile} />
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
      <FileJobView
        job={job}
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
