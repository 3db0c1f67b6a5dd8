// State of a part of the page. What comes when the part is gone, such as a late answer, changes nothing: the second change of a part
// that was taken away would put it back into the page.
import { useLayoutEffect, useState as useRawState, useRef } from 'hono/jsx/dom';

type Change<T> = T | ((now: T) => T);

export function useState<T>(initial: T | (() => T)): [T, (next: Change<T>) => void] {
  const [value, setRaw] = useRawState<T>(initial);
  const isGone = useRef(false);
  const set = useRef((next: Change<T>): void => {
    if (!isGone.current) setRaw(next);
  });
  useLayoutEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  return [value, set.current ?? setRaw];
}
