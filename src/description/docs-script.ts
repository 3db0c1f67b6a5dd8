// Script of the pages at /docs: search, sending requests with the rights of the console's session, and redirects of
// links from the time when the reference was a single page. Nothing but those requests leaves the page.
import { consoleHeader, consoleKeyName } from '../model/names.ts';
import type { SearchEntry } from './page.ts';

/** Injected by the build. */
declare const searchIndex: readonly SearchEntry[];

const prefix = location.pathname.replace(/\/docs(?:\/[^/]*)?$/, '');
const isHome = location.pathname.endsWith('/docs');
/** Maximum number of characters shown of a response. */
const mostShown = 100_000;
const mostFound = 30;

function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  text = '',
  attributes: Readonly<Record<string, string>> = {},
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function searching(): void {
  const box = document.getElementById('search');
  const query = document.querySelector<HTMLInputElement>('#query');
  const found = document.getElementById('found');
  const count = document.getElementById('count');
  if (!box || !query || !found || !count) return;
  box.hidden = false;
  const show = (): void => {
    const words = query.value
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== '');
    const entries = words.length === 0 ? [] : searched(words);
    found.replaceChildren(
      ...entries.slice(0, mostFound).map(({ title, about, href }) => {
        const link = element('a', title, { href: `${prefix}/docs/${href}` });
        link.append(element('span', about));
        const item = element('li');
        item.append(link);
        return item;
      }),
    );
    count.textContent = words.length === 0 ? '' : entries.length === 1 ? '1 place' : `${entries.length} places`;
  };
  query.addEventListener('input', show);
  const links = (): HTMLAnchorElement[] => [...found.querySelectorAll('a')];
  box.addEventListener('keydown', (event) => {
    const all = links();
    const focused = document.activeElement;
    const at = focused instanceof HTMLAnchorElement ? all.indexOf(focused) : -1;
    if (event.key === 'Escape') {
      query.value = '';
      show();
      query.focus();
    } else if (event.key === 'ArrowDown') all[at + 1]?.focus();
    else if (event.key === 'ArrowUp') (at > 0 ? all[at - 1] : query)?.focus();
    else if (event.key === 'Enter' && document.activeElement === query) all[0]?.click();
    else return;
    event.preventDefault();
  });
  found.addEventListener('click', () => {
    query.value = '';
    show();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement) return;
    event.preventDefault();
    query.focus();
  });
}

/** Search results by rank: all words in the title; then in the title or the line below it; then anywhere. */
function searched(words: readonly string[]): SearchEntry[] {
  const rank = ({ title, about, words: inside }: SearchEntry): number => {
    const has = (text: string) => words.every((word) => text.includes(word));
    const name = title.toLowerCase();
    if (has(name)) return 3;
    const named = `${name} ${about.toLowerCase()}`;
    if (has(named)) return 2;
    return has(`${named} ${inside}`) ? 1 : 0;
  };
  return searchIndex
    .map((entry) => ({ entry, rank: rank(entry) }))
    .filter((each) => each.rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .map(({ entry }) => entry);
}

function trying(): void {
  for (const details of document.querySelectorAll<HTMLDetailsElement>('details.try')) {
    details.hidden = false;
    const form = details.querySelector('form');
    form?.addEventListener('submit', (event) => {
      event.preventDefault();
      void send(form);
    });
  }
}

async function send(form: HTMLFormElement): Promise<void> {
  const output = form.querySelector('output');
  const button = form.querySelector('button');
  const { method = 'GET', path = '', public: isPublic } = form.dataset;
  if (!output || !button) return;
  output.hidden = false;
  const key = localStorage.getItem(consoleKeyName(prefix));
  if (key === null && isPublic !== 'true') {
    output.replaceChildren(
      'You are not logged in. ',
      element('a', 'Log in to the console', { href: `${prefix}/console` }),
      ' and send it again.',
    );
    output.focus();
    return;
  }
  const target = targetOf(form, path);
  if (
    (method === 'DELETE' || target === '/seal') &&
    !confirm(`${method} ${target}: are you sure? This cannot be undone.`)
  )
    return;
  button.disabled = true;
  output.textContent = 'Sent…';
  try {
    const body = form.querySelector('textarea')?.value;
    const headers = {
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(key !== null && { [consoleHeader]: key }),
    };
    const response = await fetch(prefix + target, { method, headers, ...(body !== undefined && { body }) });
    const text = readable(await response.text());
    output.replaceChildren(
      element('b', `${response.status} ${response.statusText}`),
      element('pre', text.slice(0, mostShown)),
    );
  } catch (error) {
    output.textContent = `It could not be sent: ${error instanceof Error ? error.message : String(error)}`;
  }
  button.disabled = false;
  output.focus();
}

function targetOf(form: HTMLFormElement, path: string): string {
  const query = new URLSearchParams();
  let filled = path;
  for (const { name, value, dataset } of form.querySelectorAll('input')) {
    if (dataset.in === 'path') filled = filled.replace(`{${name}}`, encodeURIComponent(value));
    else if (value !== '') query.set(name, value);
  }
  return filled + (query.size > 0 ? `?${query}` : '');
}

function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Redirects old links: `/docs#encrypt` to `/docs/encryption#encrypt`. */
function leadOn(): void {
  if (!isHome || location.hash === '') return;
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const link = place?.querySelector('a');
  if (link) location.replace(link.href);
}

searching();
trying();
leadOn();
window.addEventListener('hashchange', leadOn);
