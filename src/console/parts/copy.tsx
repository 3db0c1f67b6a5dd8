// A value with a button that copies it: ids and public keys, which nobody types.
import { announce } from '../announce.ts';
import { toast } from './toast.tsx';

export function Copyable({ text, what }: { readonly text: string; readonly what: string }) {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      toast(`Copied ${what}.`);
    } catch {
      announce('The browser does not let this page copy.');
    }
  };
  return (
    <span data-copy>
      <code>{text}</code>{' '}
      <button type="button" data-kind="link" aria-label={`Copy ${what}`} onClick={copy}>
        Copy
      </button>
    </span>
  );
}
