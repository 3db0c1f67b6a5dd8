// Values of a thing as shown on a page: facts, times in the reader's time zone, JSON, and ids that can be copied.
import type { Child } from 'hono/jsx/dom';
import { fingerprintOf } from '../../client/ring-keys.ts';
import { epochTimeOf } from '../../model/timestamp.ts';
import { exactText, jsonText, localText, type RingTraits, relativeText, ringTraits, utcText } from '../text.ts';
import { announce, toast } from './messages.tsx';

/** False and undefined are left out. */
export type Fact = readonly [name: string, value: Child] | false | undefined;

/** Pairs of a name and a value. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl>
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** From milliseconds or RFC 3339. */
function dateOf(at: number | string): Date {
  return new Date(typeof at === 'string' ? epochTimeOf(at) : at);
}

/** `at`: milliseconds, or RFC 3339. Hovering shows UTC too. */
export function Time({ at }: { readonly at: number | string }) {
  const date = dateOf(at);
  if (Number.isNaN(date.getTime())) return <span>{String(at)}</span>;
  return (
    <time datetime={date.toISOString()} title={exactText(date)}>
      {localText(date)}
    </time>
  );
}

/** Relative to now, for tables: `3 min ago`. Hovering shows the exact time. */
export function Ago({ at }: { readonly at: number | string | null }) {
  if (at === null) return <span data-quiet>never</span>;
  const date = dateOf(at);
  return (
    <time datetime={date.toISOString()} title={exactText(date)}>
      {relativeText(date, Date.now())}
    </time>
  );
}

/** The date only, for tables with many columns; hovering shows the full time. */
export function Day({ at }: { readonly at: number | string | null }) {
  if (at === null) return <span data-quiet>never</span>;
  const date = dateOf(at);
  return (
    <time datetime={date.toISOString()} title={exactText(date)}>
      {localText(date).slice(0, 10)}
    </time>
  );
}

/** The time of day, in the reader's time zone, under a heading with the date. */
export function Clock({ at }: { readonly at: number }) {
  const date = dateOf(at);
  return (
    <time datetime={date.toISOString()} title={exactText(date)}>
      {date.toLocaleTimeString('en-GB')}
    </time>
  );
}

/** A time that is known to the minute, or `never`. */
export function Minute({ at }: { readonly at: number | string | null }) {
  if (at === null) return <span data-quiet>never</span>;
  const date = dateOf(at);
  return (
    <time datetime={date.toISOString()} title={`${utcText(date).slice(0, 16)} UTC`}>
      {minuteText(at)}
    </time>
  );
}

/** `2026-01-02 04:04`, in the reader's time zone. */
export function minuteText(at: number | string): string {
  return localText(dateOf(at)).slice(0, 16);
}

/** A time, or `never`. */
export function Moment({ at }: { readonly at: number | null }) {
  return at === null ? <span data-quiet>never</span> : <Time at={at} />;
}

/** Ids and public keys, which are not typed by hand. */
interface CopyableProps {
  readonly text: string;
  readonly what: string;
  /** May be broken anywhere, so that it fits in a table. */
  readonly isLong?: boolean;
  /** Several lines, such as PEM, which are shown as lines. */
  readonly isLines?: boolean;
  /** Shown in full, however long. */
  readonly isWhole?: boolean;
}

/**
 * Longest text in characters that is shown in full. Of longer ones, such as a hybrid public key, only the beginning is
 * shown, provided that the text can be copied.
 */
const mostShown = 'clipboard' in navigator ? 200 : Number.POSITIVE_INFINITY;

export function Copyable({ text, what, isLong, isLines, isWhole = false }: CopyableProps) {
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
      <code data-any={isLong ? '' : undefined} data-lines={isLines ? '' : undefined}>
        {text.length > mostShown && !isWhole ? `${text.slice(0, 60)}…` : text}
      </code>{' '}
      <button type="button" data-kind="link" aria-label={`Copy ${what}`} onClick={copy}>
        Copy
      </button>
    </span>
  );
}

/** Fingerprint of a public key. */
export function Fingerprint({ of }: { readonly of: string }) {
  return <code>{fingerprintOf(of)}</code>;
}

/** A ring's traits, one tag each. */
export function RingTags({ of }: { readonly of: RingTraits }) {
  return (
    <>
      {ringTraits(of).map((trait) => (
        <span key={trait}>
          <span data-tag>{trait}</span>{' '}
        </span>
      ))}
    </>
  );
}

export function Json({ value }: { readonly value: unknown }) {
  if (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
    return <span data-quiet>empty</span>;
  return (
    <pre>
      <code>{jsonText(value)}</code>
    </pre>
  );
}
