// Keeps people from leaving a page that holds something which is nowhere else, such as a private key that nobody has saved yet,
// or work that would be lost.
import { useLayoutEffect, useRef } from 'hono/jsx/dom';

let held = 0;

/** Whether the page is not to be left: the browser asks before it goes elsewhere, and the shell goes nowhere. */
export function isHeld(): boolean {
  return held > 0;
}

/** Holds the page while the part is there, or until what it answers is called. */
export function useHold(): () => void {
  const release = useRef<() => void>(() => {});
  // An effect that is run later might be run after the part is gone, and then nobody would let go.
  useLayoutEffect(() => {
    const ask = (event: Event): void => event.preventDefault();
    held += 1;
    window.addEventListener('beforeunload', ask);
    release.current = () => {
      held -= 1;
      window.removeEventListener('beforeunload', ask);
      release.current = () => {};
    };
    return () => release.current?.();
  }, []);
  return () => release.current?.();
}
