// Secret shows a secret once, to be copied or saved before anything else. It is in the page's memory only while it is
// shown.
import { useId, useRef } from 'hono/jsx/dom';
import { saveAs } from '../files/saving.ts';
import { announce } from './messages.tsx';
import { useState } from './state.ts';

interface SecretProps {
  readonly label: string;
  readonly value: string;
  /** Name for saving it as a file; without it, it can only be copied. */
  readonly fileName?: string;
  /** Called once it was copied or saved. */
  readonly onTaken?: () => void;
}

export function Secret({ label, value, fileName, onTaken }: SecretProps) {
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const [said, setSaid] = useState('');

  /** Set as the field's value, so that it is in no attribute and no text node of the page. */
  const fill = (element: HTMLTextAreaElement | null): void => {
    field.current = element;
    if (element) element.value = value;
  };

  const tell = (text: string): void => {
    setSaid(text);
    announce(text);
    onTaken?.();
  };

  const copy = async (): Promise<void> => {
    field.current?.select();
    field.current?.scrollTo(0, 0);
    try {
      await navigator.clipboard.writeText(value);
      tell('Copied.');
    } catch {
      setSaid('The browser does not let this page copy: the text is selected, copy it with the keyboard.');
    }
  };

  return (
    <div data-secret>
      <label for={id}>{label}</label>
      <textarea
        id={id}
        ref={fill}
        readOnly
        rows={Math.min(6, value.trim().split('\n').length + 1)}
        spellcheck={false}
        autocomplete="off"
        data-code
        onFocus={() => field.current?.select()}
      />
      <div data-actions>
        <button type="button" onClick={copy} aria-label={`Copy: ${label}`}>
          Copy
        </button>
        {fileName !== undefined && (
          <button
            type="button"
            onClick={() => {
              saveAs(fileName, value);
              tell(`Saved as ${fileName} in your downloads.`);
            }}
          >
            Save as a file
          </button>
        )}
        <span>{said}</span>
      </div>
    </div>
  );
}
