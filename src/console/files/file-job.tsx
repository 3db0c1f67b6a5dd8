// A file job encrypts or decrypts a file in the page: its input, its destination, progress, a way to stop it, and its
// result.
import { type Child, useEffect, useRef } from 'hono/jsx/dom';
import { readPrivateKeys as keysIn, type RingPrivateKey } from '../../client/ring-keys.ts';
import { FieldProblems, fileErrorText, isStopped } from '../error-text.ts';
import { useHold } from '../navigation.ts';
import { FileField, TextArea } from '../parts/fields.tsx';
import type { FormValues } from '../parts/form.tsx';
import { announce } from '../parts/messages.tsx';
import { useState } from '../parts/state.ts';
import { bytesText } from '../text.ts';
import { destinationFor, mostInMemory, transfer, writesToDisk } from './saving.ts';

type FileJob<Answer> =
  | { readonly is: 'idle' }
  | { readonly is: 'running'; readonly read: number; readonly size: number; readonly stop: () => void }
  | { readonly is: 'stopped' }
  | { readonly is: 'failed'; readonly text: string }
  | { readonly is: 'done'; readonly saved: string; readonly answer: Answer };

interface FileStream<Answer> extends ReadableWritablePair<Uint8Array, Uint8Array> {
  readonly answer: Promise<Answer>;
}

interface FileJobInput<Answer> {
  readonly file: File;
  /** Wiped when the job ends; empty if the file is sealed to public keys. */
  readonly privateKey: readonly RingPrivateKey[];
  /** Name of the saved file. */
  readonly name: string;
  readonly stream: (signal: AbortSignal) => FileStream<Answer>;
}

/** `run` throws `FieldProblems` if the job cannot start; any other result goes to the state. */
export function useFileJob<Answer>(): [FileJob<Answer>, (input: FileJobInput<Answer>) => Promise<void>] {
  const [job, setJob] = useState<FileJob<Answer>>({ is: 'idle' });
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);

  const run = async ({ file, privateKey, name, stream }: FileJobInput<Answer>): Promise<void> => {
    if (!writesToDisk() && file.size > mostInMemory) {
      wipe(privateKey);
      const most = `This browser holds a whole file in memory to save it, so at most ${bytesText(mostInMemory)}.`;
      throw new FieldProblems({ file: `${most} Use a browser that lets pages write files, or the command line.` });
    }
    const stopping = new AbortController();
    running.current = stopping;
    const { signal } = stopping;
    try {
      const destination = await destinationFor(name);
      const tell = (read: number): void => {
        if (!signal.aborted) setJob({ is: 'running', read, size: file.size, stop: () => stopping.abort() });
      };
      tell(0);
      const through = stream(signal);
      const saved = await transfer({ file, through, destination, signal, onProgress: tell });
      announce(saved);
      setJob({ is: 'done', saved, answer: await through.answer });
    } catch (error) {
      setJob(isStopped(error) ? { is: 'stopped' } : { is: 'failed', text: fileErrorText(error) });
    } finally {
      wipe(privateKey);
    }
  };
  return [job, run];
}

export function wipe(keys: readonly RingPrivateKey[]): void {
  for (const { bytes } of keys) bytes.fill(0);
}

interface FileJobViewProps<Answer> {
  readonly job: FileJob<Answer>;
  /** Verb for the job, such as `Encrypting`. */
  readonly doing: string;
  readonly show: (answer: Answer) => Child;
}

export function FileJobView<Answer>({ job, doing, show }: FileJobViewProps<Answer>) {
  switch (job.is) {
    case 'idle':
      return null;
    case 'running':
      return (
        <section key="running" data-panel aria-label="Progress">
          <Hold />
          <p>
            {doing}: {bytesText(job.read)} of {bytesText(job.size)}.
          </p>
          <progress max={Math.max(1, job.size)} value={job.read} aria-label={doing} />
          <div data-actions>
            <button type="button" data-kind="quiet" onClick={job.stop}>
              Stop
            </button>
          </div>
        </section>
      );
    case 'stopped':
      return (
        <p key="stopped" data-note role="status">
          Stopped. Nothing was saved.
        </p>
      );
    case 'failed':
      return (
        <p key="failed" data-note data-tone="bad" role="alert">
          {job.text} Nothing was saved.
        </p>
      );
    case 'done':
      return (
        <section key="done" data-note data-tone="good" aria-label="Result">
          <p>{job.saved}</p>
          {show(job.answer)}
        </section>
      );
  }
}

/** Holds the page, since leaving it would end the job. */
function Hold() {
  useHold();
  return null;
}

/** Warns beforehand if this browser cannot write files of any size. */
export function MemoryNote() {
  if (writesToDisk()) return null;
  return (
    <p data-note>
      This browser does not let pages write a file piece by piece: files of up to {bytesText(mostInMemory)} are held in
      memory and then saved as a download. For larger ones, use another browser or <code>kms encrypt</code> and{' '}
      <code>kms decrypt</code>.
    </p>
  );
}

interface PrivateKeyFieldsProps {
  readonly legend?: string;
  readonly hint?: Child;
  readonly onFile: (file: File | undefined) => void;
}

/** A ring's private key, from a file or pasted. It stays in its fields and in the memory of this page. */
export function PrivateKeyFields({ legend = 'Private key of the keyring', hint, onFile }: PrivateKeyFieldsProps) {
  return (
    <fieldset data-plain-fieldset>
      <legend>{legend}</legend>
      {hint && <p data-hint>{hint}</p>}
      <p data-hint>It is used only in this page, and neither sent nor kept.</p>
      <div data-columns>
        <FileField
          name="keyFile"
          label="From a file"
          hint="The file that you saved when the keyring was created."
          onFile={onFile}
        />
        {/* Room for several key pairs; a browser would take a minute to mask a very long line. */}
        <TextArea name="privateKey" label="Or paste it" rows={3} isCode most={20_000} />
      </div>
    </fieldset>
  );
}

interface Chosen extends Pick<ChosenKey, 'onKeyFile'> {
  /** For the field `file`. */
  readonly onFile: (file: File | undefined) => void;
  /** Whether this file is still the chosen one. */
  isFile(file: File | undefined): boolean;
  /** The chosen file. Throws `FieldProblems` if there is none. */
  readFile(): File;
  /** The file and the ring's private keys. Throws `FieldProblems`. */
  read(values: FormValues): Promise<Pick<FileJobInput<unknown>, 'file' | 'privateKey'>>;
}

/** The file to work on and the private key for it. */
export function useChosen(): Chosen {
  const file = useRef<File>(null);
  const { onKeyFile, readPrivateKeys } = useChosenKey();
  const readFile = (): File => {
    if (file.current) return file.current;
    throw new FieldProblems({ file: 'Choose the file first.' });
  };
  return {
    onFile(chosen) {
      file.current = chosen ?? null;
    },
    onKeyFile,
    isFile: (one) => file.current === (one ?? null),
    readFile,
    async read(values) {
      const file = readFile();
      const privateKey = await readPrivateKeys(values);
      if (privateKey.length > 0) return { file, privateKey };
      throw new FieldProblems({ keyFile: 'Choose the file with the private key, or paste the key.' });
    },
  };
}

interface ChosenKey {
  /** For `PrivateKeyFields`. */
  readonly onKeyFile: (file: File | undefined) => void;
  /** Empty if neither a file was chosen nor a key pasted. Throws `FieldProblems`. */
  readPrivateKeys(values: FormValues): Promise<readonly RingPrivateKey[]>;
}

/** Key files are small; a larger one was chosen by mistake. */
const largestKeyFile = 16 * 1024;

/** A ring's private keys; the caller that reads them wipes them. */
export function useChosenKey(): ChosenKey {
  const keyFile = useRef<File>(null);
  return {
    onKeyFile(chosen) {
      keyFile.current = chosen ?? null;
    },
    async readPrivateKeys(values) {
      const pasted = values.text('privateKey');
      const chosen = keyFile.current;
      if (pasted !== '' && chosen) throw new FieldProblems({ privateKey: 'Choose a file or paste the key, not both.' });
      if (pasted !== '') return parsed(pasted, 'privateKey');
      if (!chosen) return [];
      if (chosen.size > largestKeyFile) throw new FieldProblems({ keyFile: 'This file is too large for a key.' });
      return parsed(new Uint8Array(await chosen.arrayBuffer()), 'keyFile');
    },
  };
}

function parsed(key: string | Uint8Array, field: 'privateKey' | 'keyFile'): readonly RingPrivateKey[] {
  try {
    return keysIn(key, 'this');
  } catch {
    throw new FieldProblems({
      [field]: 'This is not the private key of a keyring: expected PEM, base64 of PKCS#8 DER, or base64 of 32 bytes.',
    });
  }
}
