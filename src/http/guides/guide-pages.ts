// The guides as pages: a list of them with a search, and a page for each. They are made from the documents that
// `kms help` shows, once, when the first is asked for; they need no script, and no credential, as the API reference.
import { type GuideSection, searchSections, sectionsOf } from '../../model/guide-sections.ts';
import type { Guide } from '../../model/program-files.ts';
import { escaped } from '../escaping.ts';
import { markdownHtml, plainLine } from './markdown.ts';

/** Pages of the guides. */
export class GuideBook {
  readonly #guides: readonly Guide[];
  readonly #sections: readonly GuideSection[];
  readonly #pages = new Map<string, string>();

  constructor(guides: readonly Guide[]) {
    this.#guides = guides;
    this.#sections = guides.flatMap(sectionsOf);
  }

  /** The list of all guides, or the sections that have these words. */
  home(query: string): string {
    const words = wordsOf(query);
    const main = words.length === 0 ? listHtml(this.#guides) : foundHtml(query, this.#found(words), words);
    return page({ title: 'Guides', docs: '', guides: this.#guides, query, main });
  }

  /** Undefined if there is none of this name. */
  guide(name: string): string | undefined {
    const guide = this.#guides.find((each) => each.name === name);
    if (!guide) return undefined;
    const made = this.#pages.get(name) ?? this.#make(guide);
    this.#pages.set(name, made);
    return made;
  }

  #found(words: readonly string[]): readonly GuideSection[] {
    return searchSections(this.#sections, words);
  }

  #make(guide: Guide): string {
    const linkTo = (target: string): string | undefined => {
      if (/^https?:/.test(target)) return target;
      const [, name, anchor = ''] = /^([\w-]*)(?:\.md)?(#.*)?$/.exec(target) ?? [];
      if (name === '' && anchor !== '') return anchor;
      return this.#guides.some((each) => each.name === name) ? `${name}${anchor}` : undefined;
    };
    const main = markdownHtml(guide.text, linkTo);
    return page({ title: guide.title, docs: '../', guides: this.#guides, query: '', main, current: guide });
  }
}

/** Characters of a query, and its words. */
const longestQuery = 200;
const mostWords = 10;
/** Sections shown. */
const mostFound = 50;

function wordsOf(query: string): readonly string[] {
  return query.slice(0, longestQuery).split(/\s+/).filter(Boolean).slice(0, mostWords);
}

/** Guides for people's tasks come before descriptions of single things. */
function isTask({ name }: Guide): boolean {
  return /^guide-|^tour$/.test(name);
}

function listHtml(guides: readonly Guide[]): string {
  const items = (some: readonly Guide[]): string =>
    some.map(({ name, title }) => `<li><a href="guides/${name}">${escaped(plainLine(title))}</a></li>`).join('\n');
  return `<h1>Guides</h1>
<p>The same as <code>kms help NAME</code> shows.</p>
<ul class="columns">
${items(guides.filter(isTask))}
</ul>
<h2>In detail</h2>
<ul class="columns">
${items(guides.filter((guide) => !isTask(guide)))}
</ul>`;
}

function foundHtml(query: string, found: readonly GuideSection[], words: readonly string[]): string {
  const shown = found.slice(0, mostFound).map(({ guide, heading, anchor, text }) => {
    const line = lineWith(text, words);
    const more = line === undefined ? '' : `<br>${escaped(line)}`;
    return `<li><a href="guides/${guide.name}#${escaped(anchor)}">${escaped(plainLine(heading))}</a>
<span class="type">${escaped(plainLine(guide.title))}</span>${more}</li>`;
  });
  const count = found.length === 1 ? '1 section' : `${found.length} sections`;
  const some = found.length > mostFound ? `; the first ${mostFound} are here, add a word to see fewer` : '';
  return `<h1>${count} with “${escaped(query.slice(0, longestQuery).trim())}”</h1>
${found.length === 0 ? '<p>Try fewer words, or other ones.</p>' : `<p>${found.length === 1 ? 'It has' : 'They have'} all of the words${some}.</p>`}
<ul class="fields">
${shown.join('\n')}
</ul>`;
}

/** The first line below the heading with all the words, or else with one. */
function lineWith(text: string, words: readonly string[]): string | undefined {
  const lines = text.split('\n').slice(1).map(plainLine);
  const has = (line: string) => (word: string) => line.toLowerCase().includes(word.toLowerCase());
  return lines.find((line) => words.every(has(line))) ?? lines.find((line) => words.some(has(line)));
}

interface Page {
  readonly title: string;
  /** The way to `/docs/`, relative to the page. */
  readonly docs: '' | '../';
  readonly guides: readonly Guide[];
  readonly query: string;
  /** HTML. */
  readonly main: string;
  readonly current?: Guide;
}

function page({ title, docs, guides, query, main, current }: Page): string {
  const heads = (guide: Guide): string => {
    const second = sectionsOf(guide).filter(({ text }) => text.startsWith('## '));
    return `<ul>${second.map(({ heading, anchor }) => `<li><a href="#${escaped(anchor)}">${escaped(plainLine(heading))}</a></li>`).join('')}</ul>`;
  };
  const entry = (guide: Guide): string => {
    const isCurrent = guide === current;
    const link = `<a href="${docs}guides/${guide.name}"${isCurrent ? ' aria-current="page"' : ''}>${escaped(plainLine(guide.title))}</a>`;
    return `<li>${link}${isCurrent ? heads(guide) : ''}</li>`;
  };
  const sorted = [...guides.filter(isTask), ...guides.filter((guide) => !isTask(guide))];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escaped(plainLine(title))} - guides of kms</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" type="image/svg+xml" href="${docs}icon.svg">
<link rel="stylesheet" href="${docs}style.css">
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<p class="brand"><a href="${docs}guides">Guides</a></p>
<search>
<form action="${docs}guides" method="get">
<label for="query">Search the guides</label>
<input id="query" name="q" type="search" value="${escaped(query.slice(0, longestQuery))}" maxlength="${longestQuery}" autocomplete="off" spellcheck="false" placeholder="recovery kit, rotate">
</form>
</search>
<p class="links"><a href="${docs}../console">Console</a> <a href="${docs}../docs">API</a> <a class="narrow" href="#contents">Contents</a></p>
</header>
<nav id="contents" aria-label="Contents">
<ul>
${sorted.map(entry).join('\n')}
</ul>
</nav>
<main id="content" tabindex="-1">
${main}
</main>
</body>
</html>
`;
}
