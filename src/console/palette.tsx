// Palette is the quick way to a page, a keyring, an API key or a user, and to what can be done with them: opened with
// Ctrl+K or a button, narrowed by typing, chosen with the arrow keys and Enter.
import { useEffect, useId, useLayoutEffect, useRef } from 'hono/jsx/dom';
import type { Client } from '../client/client.ts';
import { CommandDialog } from './command-dialog.tsx';
import type { KeptNames } from './kept-names.ts';
import { hrefTo } from './navigation.ts';
import { pages } from './pages.ts';
import { actionsFor, type Command, generalActions, type PaletteAction } from './palette-actions.ts';
import { countLine, entriesOf, foundEntries, type PaletteEntry, pageEntries } from './palette-entries.ts';
import { Dialog } from './parts/dialog.tsx';
import { Icon } from './parts/icon.tsx';
import { useState } from './parts/state.ts';
import type { Session, SessionClient } from './session.ts';

interface PaletteProps extends Pick<SessionClient, 'stream'> {
  readonly api: Client;
  readonly names: KeptNames;
  readonly session: Session;
  readonly navigate: (href: string) => void;
}

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** The button, and the dialog that it opens. */
export function Palette(props: PaletteProps) {
  const [isOpen, setOpen] = useState(false);
  const [command, setCommand] = useState<Command | undefined>(undefined);
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      event.preventDefault();
      // An open dialog comes first.
      if (document.querySelector('dialog') === null) setOpen(true);
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);
  return (
    <>
      <button
        type="button"
        data-kind="quiet"
        data-goto
        aria-keyshortcuts="Control+K Meta+K"
        onClick={() => setOpen(true)}
      >
        <Icon name="search" />
        <span>Go to…</span>
        <small aria-hidden="true">{isMac ? '⌘K' : 'Ctrl K'}</small>
      </button>
      {isOpen && <Choice key="choice" {...props} onClose={() => setOpen(false)} onCommand={setCommand} />}
      {command && <CommandDialog key="command" {...props} command={command} onClose={() => setCommand(undefined)} />}
    </>
  );
}

interface ChoiceProps extends PaletteProps {
  readonly onClose: () => void;
  readonly onCommand: (command: Command) => void;
}

function Choice({ names, session, navigate, onClose, onCommand }: ChoiceProps) {
  const { may } = session;
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const [isAsking, setAsking] = useState(true);
  const [entries, setEntries] = useState<readonly PaletteEntry[]>(pageEntries(pages, may));
  useLayoutEffect(() => {
    void names.get(may).then((known) => {
      setEntries((before) => [...before, ...entriesOf(known)]);
      setAsking(false);
    });
  }, []);
  const offer = offered(entries, typed, may);
  const { shown: found } = offer;
  const chosen = Math.min(at, found.length - 1);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen, typed]);

  const go = (entry: Offer | undefined): void => {
    if (!entry) return;
    onClose();
    if ('command' in entry) onCommand(entry.command);
    else navigate(hrefTo(entry.page, entry.params));
  };

  const press = (event: KeyboardEvent): void => {
    const step = steps[event.key];
    if (event.key === 'Enter') go(found[chosen]);
    else if (step === undefined || found.length === 0) return;
    else setAt((chosen + step + found.length) % found.length);
    event.preventDefault();
  };

  return (
    <Dialog title="Go to" onClose={onClose}>
      <div data-palette>
        <input
          type="text"
          role="combobox"
          aria-label="A page, a keyring, an API key or a user"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={found.length > 0 ? `${id}-${chosen}` : undefined}
          aria-autocomplete="list"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          autofocus
          placeholder="A page, a keyring, an API key or a user"
          onKeyDown={press}
          onInput={(event: Event) => {
            setTyped((event.target as HTMLInputElement).value);
            setAt(0);
          }}
        />
        <div id={id} ref={list} role="listbox" aria-label="Places">
          {found.map((entry, index) => (
            // A click does the same as Enter in the field, which keeps the focus.
            <div
              key={'command' in entry ? entry.name + entry.also : `${entry.page} ${JSON.stringify(entry.params)}`}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === chosen ? 'true' : 'false'}
              tabIndex={-1}
              onClick={() => go(entry)}
              onKeyDown={press}
            >
              <bdi>{entry.name}</bdi> <small>{[entry.kind, entry.about].filter((each) => each).join(', ')}</small>
            </div>
          ))}
        </div>
        <p role="status" data-quiet>
          {countLine(offer, isAsking)}
        </p>
      </div>
    </Dialog>
  );
}

type Offer = PaletteEntry | PaletteAction;

/** Places and actions that fit the typed text; without any text, pages and the actions that need nothing else. */
function offered(entries: readonly PaletteEntry[], typed: string, may: Session['may']) {
  const general = generalActions(may);
  if (typed.trim() === '') {
    const { shown, total } = foundEntries(entries, '');
    return { shown: [...shown, ...general], total: total + general.length };
  }
  return foundEntries<Offer>([...entries, ...general, ...actionsFor(entries, typed, may)], typed);
}

const steps: Readonly<Record<string, number | undefined>> = { ArrowDown: 1, ArrowUp: -1 };
