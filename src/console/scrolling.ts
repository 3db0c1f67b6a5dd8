// Keeps the scroll position of each entry of the window's history, so that Back returns to the row that was left. The
// browser's own restoring comes too early: the page's rows are not there yet.

const positions = new Map<string, number>();

function entryKey(): string {
  const state: unknown = window.history.state;
  return typeof state === 'object' && state !== null && 'entry' in state ? String(state.entry) : 'first';
}

/** State for a new entry of the history. */
export function newEntry(): { readonly entry: string } {
  return { entry: crypto.randomUUID() };
}

/** Notes positions while the user scrolls, until the returned function is called. */
export function keepPositions(): () => void {
  window.history.scrollRestoration = 'manual';
  const note = (): void => {
    positions.set(entryKey(), window.scrollY);
  };
  window.addEventListener('scroll', note, { passive: true });
  return () => {
    window.history.scrollRestoration = 'auto';
    window.removeEventListener('scroll', note);
  };
}

/** Milliseconds for which a page may take to become as long as it was. */
const longestWait = 3000;

/** Scrolls to where this entry was left, as soon as the page is long enough; gives up if the user scrolls first. */
export function restorePosition(): void {
  const key = entryKey();
  const wanted = positions.get(key) ?? 0;
  const end = performance.now() + longestWait;
  const stopped = new AbortController();
  for (const event of ['wheel', 'touchmove', 'keydown', 'pointerdown']) {
    window.addEventListener(event, () => stopped.abort(), { once: true, passive: true, signal: stopped.signal });
  }
  const attempt = (): void => {
    if (stopped.signal.aborted || entryKey() !== key) return;
    const isLongEnough = document.documentElement.scrollHeight - window.innerHeight >= wanted;
    if (isLongEnough) window.scrollTo(0, wanted);
    if (isLongEnough || performance.now() > end) stopped.abort();
    else requestAnimationFrame(attempt);
  };
  // Not before the page is rendered.
  requestAnimationFrame(() => requestAnimationFrame(attempt));
}
