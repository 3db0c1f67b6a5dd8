// Actions of the palette: what can be done from anywhere, and what can be done with a keyring or an API key that it
// found. Pure, so that it is tested without a browser.
import type { Flags } from '../model/flags.ts';
import type { PaletteEntry } from './palette-entries.ts';
import type { Theme } from './theme.ts';

/** `id` names a keyring or API key in requests, `name` in messages. */
export type Command =
  | { readonly do: 'rotate'; readonly id: string; readonly name: string }
  | { readonly do: 'disable'; readonly id: string; readonly name: string }
  | { readonly do: 'backup' }
  | { readonly do: 'seal' }
  | { readonly do: 'guides' }
  | { readonly do: 'theme'; readonly theme: Theme };

export interface PaletteAction {
  readonly kind: 'Action';
  readonly name: string;
  readonly also: string;
  readonly about?: string;
  readonly command: Command;
}

const themeActions: readonly PaletteAction[] = (
  [
    ['light', 'Theme: Light'],
    ['dark', 'Theme: Dark'],
    ['system', 'Theme: System'],
  ] as const
).map(([theme, name]) => ({ kind: 'Action', name, also: 'colours mode', command: { do: 'theme', theme } }));

/** Actions that need nothing to be found first. */
export function generalActions(may: Flags): PaletteAction[] {
  return [
    ...(may.allows('system.backup')
      ? [{ kind: 'Action', name: 'Back up now', also: 'backup download', command: { do: 'backup' } } as const]
      : []),
    ...(may.allows('system.seal')
      ? [{ kind: 'Action', name: 'Seal the service…', also: '', command: { do: 'seal' } } as const]
      : []),
    { kind: 'Action', name: 'Read the guides', also: 'help documentation manual', command: { do: 'guides' } },
    ...themeActions,
  ];
}

/** Letters of a verb from which on its actions are offered. */
const leastTyped = 2;

/** Actions for the entries found, if what was typed begins with their verb: `rotate payroll`, `dis nightly`. */
export function actionsFor(entries: readonly PaletteEntry[], typed: string, may: Flags): PaletteAction[] {
  const [verb = ''] = typed.trim().toLowerCase().split(/\s+/);
  if (verb.length < leastTyped) return [];
  return entries.flatMap(({ kind, name, params = {} }): PaletteAction[] => {
    const ring = params.name ?? '';
    if (kind === 'Keyring' && 'rotate'.startsWith(verb) && may.allows('keyring.rotate', ring)) {
      return [{ kind: 'Action', name: `Rotate keyring ${name}…`, also: '', command: { do: 'rotate', id: ring, name } }];
    }
    const id = params.id ?? '';
    if (kind === 'API key' && 'disable'.startsWith(verb) && may.allows('apikey.update')) {
      return [{ kind: 'Action', name: `Disable API key ${name}…`, also: id, command: { do: 'disable', id, name } }];
    }
    return [];
  });
}
