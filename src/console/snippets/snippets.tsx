// Snippets shows programs to start from, one language at a time; the language chosen is remembered in this browser.
import { useId } from 'hono/jsx/dom';
import { announce, toast } from '../parts/messages.tsx';
import { Segments } from '../parts/segments.tsx';
import { useState } from '../parts/state.ts';
import type { Snippet } from './snippet-texts.ts';

interface SnippetsProps {
  readonly snippets: readonly Snippet[];
  /** File with the API key; without one it is in a variable. */
  readonly keyFile?: string;
  /** File with the private key that unwraps a keyring's keys. */
  readonly privateKeyFile?: string;
  /** Whether the programs only encrypt, to the keyring's public key. */
  readonly isSealing?: boolean;
}

type Language = Snippet['language'];

const labels: Readonly<Record<Language, string>> = {
  kms: 'kms',
  curl: 'curl',
  TypeScript: 'TypeScript',
  Python: 'Python',
  hvac: 'Python with hvac',
};

/** Languages whose programs open what they are given. */
const unwraps: readonly Language[] = ['kms', 'TypeScript'];

const keptAs = 'kms-snippets';

export function Snippets({ snippets, keyFile, privateKeyFile, isSealing = false }: SnippetsProps) {
  const [language, setLanguage] = useState<string | null>(() => localStorage.getItem(keptAs));
  const id = useId();
  const shown = snippets.find((each) => each.language === language) ?? snippets[0];
  if (!shown) return null;
  const choose = (next: Language): void => {
    localStorage.setItem(keptAs, next);
    setLanguage(next);
  };
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(shown.code);
      toast('Copied the program.');
    } catch {
      announce('The browser does not let this page copy.');
    }
  };
  return (
    <section data-panel aria-labelledby={id}>
      <div data-bar>
        <h2 id={id}>Use it</h2>
        <Segments
          legend="Language"
          choices={snippets.map((each) => ({ value: each.language, label: labels[each.language] }))}
          chosen={shown.language}
          onChange={choose}
        />
      </div>
      <p data-quiet>
        The API key is in {keyFile === undefined ? 'the variable ' : 'the file '}
        <code>{keyFile ?? 'KMS_API_KEY'}</code>
        {privateKeyFile !== undefined && unwraps.includes(shown.language) && (
          <>
            , and the private key in the file <code>{privateKeyFile}</code>
          </>
        )}
        .{isSealing && ' No private key is needed: only its holder can open the file.'}
      </p>
      <pre>
        <code>{shown.code}</code>
      </pre>
      <div data-actions>
        <button
          type="button"
          data-kind="quiet"
          onClick={copy}
          aria-label={`Copy the program for ${labels[shown.language]}`}
        >
          Copy
        </button>
      </div>
    </section>
  );
}
