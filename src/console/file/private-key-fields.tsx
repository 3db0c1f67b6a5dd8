// The private key of a ring, from a file or pasted. It stays in its fields and in the memory of this page, and goes nowhere.
import { useRef } from 'hono/jsx/dom';
import { readPrivateKey } from '../../client/private-key.ts';
import { FileField } from '../parts/file-field.tsx';
import { FieldProblems, type FormValues, TextArea } from '../parts/form.tsx';

export interface PrivateKeyFieldsProps {
  readonly onFile: (file: File | undefined) => void;
}

export function PrivateKeyFields({ onFile }: PrivateKeyFieldsProps) {
  return (
    <fieldset data-plain-fieldset>
      <legend>Private key of the ring</legend>
      <p data-hint>It is used in this page alone: it is neither sent nor kept.</p>
      <div data-columns>
        <FileField name="keyFile" label="From a file" hint="As it was saved when the ring was made." onFile={onFile} />
        <TextArea name="privateKey" label="Or pasted" rows={3} isCode />
      </div>
    </fieldset>
  );
}

export interface ChosenKey {
  /** For `PrivateKeyFields`. */
  readonly onFile: (file: File | undefined) => void;
  /** The 32 bytes. Throws `FieldProblems`. */
  read(values: FormValues): Promise<Uint8Array>;
}

/** A key file is small; anything larger was chosen by mistake. */
const largestKeyFile = 16 * 1024;

export function useChosenKey(): ChosenKey {
  const file = useRef<File>(null);
  return {
    onFile(chosen) {
      file.current = chosen ?? null;
    },
    async read(values) {
      const pasted = values.text('privateKey');
      const chosen = file.current;
      if (pasted !== '' && chosen) throw new FieldProblems({ privateKey: 'Choose a file or paste the key, not both.' });
      if (pasted !== '') return parsed(pasted, 'privateKey');
      if (!chosen) throw new FieldProblems({ keyFile: 'Choose the file with the private key, or paste the key.' });
      if (chosen.size > largestKeyFile) throw new FieldProblems({ keyFile: 'This file is too large for a key.' });
      return parsed(new Uint8Array(await chosen.arrayBuffer()), 'keyFile');
    },
  };
}

function parsed(key: string | Uint8Array, field: 'privateKey' | 'keyFile'): Uint8Array {
  try {
    return readPrivateKey(key, 'this');
  } catch {
    throw new FieldProblems({
      [field]: 'This is no X25519 private key: neither PEM, nor base64 of PKCS#8 DER, nor base64 of 32 bytes.',
    });
  }
}
