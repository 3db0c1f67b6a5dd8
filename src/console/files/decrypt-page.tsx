import { type DecryptAnswer, decryptStream } from '../../client/file-streams.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Check, FileField } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { PageHeader } from '../parts/page.tsx';
import { Facts, Json } from '../parts/values.tsx';
import { FileJobView, MemoryNote, PrivateKeyFields, useChosen, useFileJob } from './file-job.tsx';
import { decryptedName } from './saving.ts';

export function DecryptPage({ api }: PageProps) {
  const chosen = useChosen();
  const [job, run] = useFileJob<DecryptAnswer>();

  const submit = async (values: FormValues): Promise<void> => {
    const { file, privateKey } = await chosen.read(values);
    const allowInvalidAsset = values.isOn('allowInvalidAsset');
    await run({
      file,
      privateKey,
      name: decryptedName(file.name),
      stream: (signal) => decryptStream({ client: api, privateKey, keepKeys: false, signal, allowInvalidAsset }),
    });
  };

  return (
    <>
      <PageHeader
        title="Decrypt a file"
        lead={
          <>
            The file says by which keyring it was encrypted; the service is asked for its key, and the bytes stay in
            this page.
          </>
        }
      />
      <MemoryNote />
      <Form action="Decrypt and save" busy="Decrypting…" onSubmit={submit}>
        <FileField name="file" label="Encrypted file" isRequired onFile={chosen.onFile} />
        <PrivateKeyFields onFile={chosen.onKeyFile} />
        <Check
          name="allowInvalidAsset"
          label="Decrypt even where the asset does not verify"
          hint="An asset that was deleted or altered does not. Without this nothing is decrypted then."
        />
      </Form>
      <FileJobView job={job} doing="Decrypting" show={(answer) => <Told answer={answer} />} />
    </>
  );
}

function Told({ answer: { ringname, asset } }: { readonly answer: DecryptAnswer }) {
  return (
    <Facts
      facts={[
        [
          'Keyring',
          <a key="ring" href={hrefTo('keyring', { name: ringname })}>
            <bdi>{ringname}</bdi>
          </a>,
        ],
        [
          'Asset',
          asset ? (
            <span key="verdict" data-tag data-tone={asset.valid ? 'good' : 'bad'}>
              {asset.valid ? 'valid' : 'not valid'}
            </span>
          ) : (
            'the file carries none'
          ),
        ],
        asset && ['Verdict', asset.message],
        asset && [
          'Id of the asset',
          <a key="asset" href={hrefTo('asset', { id: asset.id })}>
            <code>{asset.id}</code>
          </a>,
        ],
        asset && ['Data of the asset', <Json key="data" value={asset.data} />],
      ]}
    />
  );
}
