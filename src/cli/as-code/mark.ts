// The mark `props.managedBy` of objects that came from a configuration: it is set when they are made, kept by every
// change, and left out of what files say and of what is compared. It also tells what a run that was cut off has left
// undone.
import { isJsonObject, type JsonObject } from '../../model/json.ts';

/** Whether a text can be a mark; others could be taken for one of an object that is not whole. */
export function isMark(text: string): boolean {
  return /^[\p{L}\p{N}][\p{L}\p{N}._@/-]{0,63}$/u.test(text);
}

export const markForm = 'expected a name of at most 64 letters, digits and . _ @ / -';

/** Properties that name a mark: it is set by the tool, from this `setting`. */
export function markProblems({ props }: JsonObject, setting: string) {
  if (!isJsonObject(props) || !Object.hasOwn(props, 'managedBy')) return [];
  const message = `is the mark that is set for you: leave it out, and name it with ${setting}`;
  return [{ path: ['props', 'managedBy'], message }];
}

/** Words behind the mark until an object is whole: it is being made, or only its secret is. */
const lacking = { all: ' (unfinished)', secret: ' (secret unfinished)' } as const;
type Lack = keyof typeof lacking;

/** Properties with the mark of the configuration, and what the object still lacks. */
export function marked(props: unknown, managedBy: string, lack?: Lack): JsonObject {
  return { ...Object(props), managedBy: lack ? managedBy + lacking[lack] : managedBy };
}

interface Unmarked {
  readonly props: JsonObject;
  readonly managedBy?: string;
  readonly lacks?: Lack;
}

/** Properties and mark of an object, apart. What is no text is no mark, and no property that a file could name. */
export function unmarked({ managedBy, ...props }: JsonObject): Unmarked {
  if (typeof managedBy !== 'string') return { props };
  const lacks = (['all', 'secret'] as const).find((lack) => managedBy.endsWith(lacking[lack]));
  const mark = lacks ? managedBy.slice(0, -lacking[lacks].length) : managedBy;
  return { props, ...(mark !== '' && { managedBy: mark }), ...(lacks && { lacks }) };
}

/** Properties that a change sets: those of the file, and the mark that the object has. */
export function keepingMark(props: unknown, { managedBy }: { readonly managedBy?: string }): JsonObject {
  return managedBy === undefined ? { ...Object(props) } : marked(props, managedBy);
}
