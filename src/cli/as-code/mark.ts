// The mark `props.managedBy` of objects that came from a configuration: it is set when they are made, kept by every
// change, and left out of what files say and of what is compared.
import type { JsonObject } from '../../model/json.ts';

/** Behind the mark of an object whose making was cut off. */
const unfinished = ' (unfinished)';

/** Properties with the mark of the configuration; `isWhole` is false until everything about the object is done. */
export function marked(props: unknown, managedBy: string, isWhole = true): JsonObject {
  return { ...Object(props), managedBy: isWhole ? managedBy : managedBy + unfinished };
}

interface Unmarked {
  readonly props: JsonObject;
  readonly managedBy?: string;
  readonly isUnfinished?: true;
}

/** Properties and mark of an object, apart. What is no text is no mark, and no property that a file could name. */
export function unmarked({ managedBy, ...props }: JsonObject): Unmarked {
  if (typeof managedBy !== 'string') return { props };
  if (!managedBy.endsWith(unfinished)) return { props, managedBy };
  return { props, managedBy: managedBy.slice(0, -unfinished.length), isUnfinished: true };
}

/** Properties that a change sets: those of the file, and the mark that the object has. */
export function keepingMark(props: unknown, { managedBy }: { readonly managedBy?: string }): JsonObject {
  return managedBy === undefined ? { ...Object(props) } : marked(props, managedBy);
}
