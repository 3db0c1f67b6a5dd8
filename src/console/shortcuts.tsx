// Shortcuts listens for the keys that work on every page: / goes to the search box, ? lists the keys.
import { useLayoutEffect } from 'hono/jsx/dom';
import { guidesUrl } from './navigation.ts';
import { Dialog } from './parts/dialog.tsx';
import { useState } from './parts/state.ts';
import { Facts } from './parts/values.tsx';

export function Shortcuts() {
  const [isOpen, setOpen] = useState(false);
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector('dialog') !== null) return;
      if (event.key === '?') setOpen(true);
      const box = event.key === '/' ? document.querySelector<HTMLInputElement>('main input[type=search]') : null;
      if (box) {
        event.preventDefault();
        box.focus();
        box.select();
      }
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);
  if (!isOpen) return null;
  const close = (): void => setOpen(false);
  return (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <Facts facts={keys.map(([key, does]) => [key, does] as const)} />
      <p>
        The{' '}
        <a href={guidesUrl} target="_blank" rel="noopener">
          guides<span data-spoken> (in a new tab)</span>
        </a>{' '}
        explain the rest.
      </p>
      <p data-actions>
        <button type="button" data-kind="quiet" onClick={close}>
          Close
        </button>
      </p>
    </Dialog>
  );
}

const keys: readonly (readonly [key: string, does: string])[] = [
  ['Ctrl K or ⌘ K', 'Find a page, a keyring, an API key or a user, or do something with one'],
  ['/', 'Search the list on this page'],
  ['?', 'Show these shortcuts'],
  ['Esc', 'Close what is open'],
];

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable]') !== null;
}
