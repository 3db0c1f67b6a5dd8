// DecryptPage decrypts a file of either version in the page, and shows beforehand what the file's header tells.
import { type FileInspection, inspectFile } from '../../client/file-inspection.ts';
import { type DecryptAnswer, decryptStream } from '../../client/file-streams.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Check, FileField } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useState } from '../parts/state.ts';
import { Facts, Json } from '../parts/values.tsx';
import { bytesText, kemText } from '../text.ts';
import { FileJobView, MemoryNote, PrivateKeyFields, useChosen, useFileJob } from './file-job.tsx';
import { decryptedName } from './saving.ts';

export function DecryptPage({ keeper }: PageProps) {
  const chosen = useChosen();
  const [inspected, setInspected] = useState<FileInspection | undefined>(undefined);
  const [job, run] = useFileJob<DecryptAnswer>();

  const look = async (file: File | undefined): Promise<void> => {
    chosen.onFile(file);
    setInspected(undefined);
    // If it is not an encrypted file, decrypting will report that.
    const told = file && (await inspectFile(file.stream(), file.size).catch(() => undefined));
    if (chosen.isFile(file)) setInspected(told);
  };

  const submit = async (values: FormValues): Promise<void> => {
    const { file, privateKey } = await chosen.read(values);
    const allowInvalidAsset = values.isOn('allowInvalidAsset');
    await run({
      file,
      privateKey,
      name: decryptedName(file.name),
      stream: (signal) => decryptStream({ client: keeper, privateKey, signal, allowInvalidAsset }),
    });
  };

  return (
    <>
      <PageHeader
        title="Decrypt a file"
        lead={<>The file names its keyring, and the page asks the service for the key. The bytes stay in this page.</>}
      />
      <MemoryNote />
      <Form action="Decrypt and save" busy="Decrypting…" onSubmit={submit}>
        <FileField name="file" label="Encrypted file" isRequired onFile={(file) => void look(file)} />
        {inspected && <Inspected key="inspected" file={inspected} />}
        <PrivateKeyFields onFile={chosen.onKeyFile} />
        <Check
          name="allowInvalidAsset"
          label="Decrypt even if the asset does not verify"
          hint="A deleted or altered asset does not verify. Unless you tick this, such a file is not decrypted."
        />
      </Form>
      <FileJobView job={job} doing="Decrypting" show={(answer) => <DecryptedFacts answer={answer} />} />
    </>
  );
}

/** KEM names by HPKE id. */
const kemTexts: ReadonlyMap<number | undefined, string> = new Map([
  [0x20, kemText('x25519')],
  [0x647a, kemText('mlkem768-x25519')],
]);

/** The same facts as `kms inspect`, without asking the service. */
function Inspected({ file: { fileVersion, headers, contentSize } }: { readonly file: FileInspection }) {
  const isSealed = fileVersion === 2;
  const isAlone = headers.length === 1;
  const offline = headers.filter(({ isOffline }) => isOffline).length;
  const assetId = headers.find((header) => header.assetId !== undefined)?.assetId;
  return (
    <section data-note aria-label="What the file says about itself">
      <Facts
        facts={[
          ['Encrypted with', isSealed ? 'the public key: the writer cannot open it' : 'the private key'],
          ['File format', fileVersion],
          isSealed && ['For', isAlone ? 'one keyring' : `${headers.length} keyrings, each of which opens it`],
          isSealed && [
            'Sealed by',
            [...new Set(headers.map(({ kem }) => kemTexts.get(kem) ?? 'a newer way'))].join(', '),
          ],
          offline > 0 && [
            'Offline',
            isAlone ? 'its private key alone opens it' : `for ${offline} of them, the private key alone opens it`,
          ],
          ['Content', contentSize === undefined ? 'the file was cut short or extended' : bytesText(contentSize)],
          assetId !== undefined && ['Asset', <code key="asset">{assetId}</code>],
        ]}
      />
      <p data-hint>This is what the file claims. Decrypting it shows whether that is true.</p>
    </section>
  );
}

function DecryptedFacts({ answer: { ringname, asset } }: { readonly answer: DecryptAnswer }) {
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
