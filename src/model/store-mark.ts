// Mark: a store's log position, that is its transaction count and the newest runs of its log. A run is everything that
// one opening of the store wrote, identified by the tag of its first record, which no other history has. So two marks
// tell whether they belong to one history.

export interface Run {
  /** Transactions before it. */
  readonly from: number;
  /** The first half of the tag that seals its first record, 16 hexadecimal digits. */
  readonly tag: string;
}

export interface Mark {
  readonly sequence: number;
  /** Newest first, at most `runsKept`; fewer means that there are no others. */
  readonly runs: readonly Run[];
}

export const runsKept = 8;

export function withRun(runs: readonly Run[], run: Run): readonly Run[] {
  return [run, ...runs].slice(0, runsKept);
}

/** Whether the marks are from different histories. Anything before the oldest run of either is not compared. */
export function isFork(a: Mark, b: Mark): boolean {
  const since = Math.max(firstKnown(a.runs), firstKnown(b.runs));
  const until = Math.min(a.sequence, b.sequence);
  const shared = ({ runs }: Mark): string => formatRuns(runs.filter(({ from }) => from >= since && from < until));
  return shared(a) !== shared(b);
}

function firstKnown(runs: readonly Run[]): number {
  return runs.length < runsKept ? 0 : (runs.at(-1)?.from ?? 0);
}

const texts = new WeakMap<readonly Run[], string>();

/** `<sequence>`, then `.<from>-<tag>` for each run: the end of `Kms-State`. */
export function formatMark({ sequence, runs }: Mark): string {
  let text = texts.get(runs);
  if (text === undefined) {
    text = formatRuns(runs);
    texts.set(runs, text);
  }
  return sequence + text;
}

function formatRuns(runs: readonly Run[]): string {
  return runs.map(({ from, tag }) => `.${from}-${tag}`).join('');
}

/** Parses the text of `formatMark`; undefined for anything else. */
export function parseMark(text: string): Mark | undefined {
  const [first = '', ...parts] = text.split('.');
  if (!/^[0-9]{1,15}$/.test(first)) return undefined;
  const sequence = Number(first);
  const runs: Run[] = [];
  for (const part of parts) {
    const [, from, tag] = /^([0-9]{1,15})-([0-9a-f]{16})$/.exec(part) ?? [];
    if (from === undefined || tag === undefined) return undefined;
    if (Number(from) >= (runs.at(-1)?.from ?? sequence)) return undefined;
    runs.push({ from: Number(from), tag });
  }
  return { sequence, runs };
}
