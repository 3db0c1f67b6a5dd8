// Menu is the navigation: pages grouped by purpose. Pages that the session's flags do not show are listed all the same,
// so that users know what to ask for.
import { useId } from 'hono/jsx/dom';
import { type ConsolePageName, consolePages } from '../api/console-pages.ts';
import { hrefTo } from './navigation.ts';
import type { Page } from './page.ts';
import { pages } from './pages.ts';
import { Icon, type IconName } from './parts/icon.tsx';
import { useState } from './parts/state.ts';
import type { Session } from './session.ts';
import { countText } from './text.ts';
import { currentTheme, setTheme, type Theme, themeNames } from './theme.ts';

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

interface Group {
  /** Absent if the group is a single entry. */
  readonly title?: string;
  readonly entries: readonly (readonly [name: ConsolePageName, icon: IconName])[];
}

const groups: readonly Group[] = [
  {
    entries: [
      ['home', 'home'],
      ['approvals', 'approve'],
    ],
  },
  {
    title: 'Keys',
    entries: [
      ['keyrings', 'key'],
      ['asym', 'keyPair'],
      ['managedKeys', 'key'],
      ['kmip', 'program'],
      ['tang', 'unlock'],
    ],
  },
  {
    title: 'Files',
    entries: [
      ['encrypt', 'lock'],
      ['decrypt', 'unlock'],
      ['assets', 'file'],
    ],
  },
  {
    title: 'Access',
    entries: [
      ['apikeys', 'program'],
      ['users', 'people'],
      ['accounts', 'account'],
    ],
  },
  { title: 'Audit', entries: [['activity', 'log']] },
  {
    title: 'You',
    entries: [
      ['me', 'person'],
      ['about', 'about'],
    ],
  },
];

interface MenuProps {
  readonly page: Page | undefined;
  readonly session: Session;
  readonly isOpen: boolean;
  /** Number of requests that wait for the reader's approval. */
  readonly waiting: number;
}

export function Menu({ page, session, isOpen, waiting }: MenuProps) {
  return (
    <nav aria-label="Console" data-open={isOpen ? '' : undefined}>
      {groups.map(({ title, entries }) => (
        <section key={title ?? 'first'}>
          {title !== undefined && <p id={`menu-${title}`}>{title}</p>}
          <ul aria-labelledby={title === undefined ? undefined : `menu-${title}`}>
            {entries.map(([name, icon]) => (
              <Entry key={name} {...{ name, icon, page, session }} count={name === 'approvals' ? waiting : 0} />
            ))}
          </ul>
        </section>
      ))}
      <ThemeSelect />
      <p data-zone>
        {zone === 'UTC' ? 'Times are in UTC.' : `Times are in the time zone ${zone}; point at one to see it in UTC.`}
      </p>
    </nav>
  );
}

function ThemeSelect() {
  const [theme, setShown] = useState(currentTheme());
  return (
    <label data-theme-select>
      Theme{' '}
      <select
        value={theme}
        onChange={(event: Event) => {
          const { value } = event.target as HTMLSelectElement;
          setTheme(value as Theme); // one of the options
          setShown(currentTheme());
        }}
      >
        {Object.entries(themeNames).map(([each, name]) => (
          <option key={each} value={each}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

interface EntryProps extends Pick<MenuProps, 'page' | 'session'> {
  readonly name: ConsolePageName;
  readonly icon: IconName;
  /** Number of things there that wait for the reader. */
  readonly count: number;
}

function Entry({ name, icon, page, session, count }: EntryProps) {
  const needs = pages.find((each) => each.name === name)?.needs;
  const lacks = needs !== undefined && !needs.some((each) => session.may.allowsSome(each));
  const id = useId();
  const reason = lacks ? `You would need a flag for ${needs.join(' or ')}.` : undefined;
  return (
    <li>
      <a
        href={hrefTo(name)}
        aria-current={page?.name === name ? 'page' : page?.under === name ? 'true' : undefined}
        data-lacks={lacks ? '' : undefined}
        title={reason}
        aria-describedby={lacks ? id : undefined}
      >
        <Icon name={icon} />
        <span>{consolePages[name].title}</span>
        {lacks && <small> not allowed</small>}
        {count > 0 && (
          <small key="count" data-badge>
            {countText(count)}
            <span data-spoken> waiting for you</span>
          </small>
        )}
      </a>
      {lacks && (
        <span id={id} data-spoken>
          {reason}
        </span>
      )}
    </li>
  );
}
