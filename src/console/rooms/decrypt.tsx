// Decrypts a file in the browser and says what became of the asset that it carries. Opens what `kms encrypt` and the console make.
import { useRef } from 'hono/jsx/dom';
import { type DecryptAnswer, decryptStream } from '../../client/file-streams.ts';
import { hrefTo } from '../address.ts';
import { MemoryNote } from '../file/memory-note.tsx';
import { PrivateKeyFields, useChosenKey } from '../file/private-key-fields.tsx';
import { decryptedName } from '../file/transfer.ts';
import { useWork } from '../file/use-work.ts';
import { WorkView } from '../file/work-view.tsx';
import { Facts } from '../parts/facts.tsx';
import { FileField } from '../parts/file-field.tsx';
import { Check, FieldProblems, Form, type FormValues } from '../parts/form.tsx';
import { Json } from '../parts/json.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import type { RoomProps } from '../room.ts';

export function DecryptRoom({ api }: RoomProps) {
  const file = useRef<File>(null);
  const privateKey = useChosenKey();
  const [work, run] = useWork<DecryptAnswer>();

  const submit = async (values: FormValues): Promise<void> => {
    const chosen = file.current;
    if (!chosen) throw new FieldProblems({ file: 'Choose the file first.' });
    const key = await privateKey.read(values);
    try {
      await run({
        file: chosen,
        name: decryptedName(chosen.name),
        stream: (signal) =>
          decryptStream({
            client: api,
            privateKey: key,
            signal,
            allowInvalidAsset: values.isOn('allowInvalidAsset'),
          }),
      });
    } finally {
      key.fill(0);
    }
  };

  return (
    <>
      <PageHeader
        title="Decrypt a file"
        lead="The file says by which ring it was encrypted; the service is asked for its key, and the bytes stay in this page."
      />
      <MemoryNote />
      <Form action="Decrypt and save" busy="Decrypting…" onSubmit={submit}>
        <FileField
          name="file"
          label="Encrypted file"
          isRequired
          onFile={(chosen) => {
            file.current = chosen ?? null;
          }}
        />
        <PrivateKeyFields onFile={privateKey.onFile} />
        <Check
          name="allowInvalidAsset"
          label="Decrypt even where the asset does not verify"
          hint="An asset that was deleted or altered does not. Without this nothing is decrypted then."
        />
      </Form>
      <WorkView work={work} doing="Decrypting" show={(answer) => <Told answer={answer} />} />
    </>
  );
}

function Told({ answer: { ringname, asset } }: { readonly answer: DecryptAnswer }) {
  return (
    <Facts
      facts={[
        [
          'Ring',
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
