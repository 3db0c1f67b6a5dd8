// The HTML around the console: a page that its script fills, and a notice that needs no script. Nothing in it is inline but text.
import type { ConsoleFiles } from './console.ts';

export interface PagePlace {
  /** The appliance's address as seen from the page, with a slash at the end. */
  readonly root: string;
  readonly files: ConsoleFiles;
}

export function pageHtml(title: string, place: PagePlace): string {
  const { root, files } = place;
  const script = `<script type="module" src="${root}console/static/${files.script.name}"></script>\n`;
  const main = `<noscript>
<h1>${escaped(title)}</h1>
<p>This page needs JavaScript: please allow it for this address and load the page again.</p>
</noscript>`;
  return html(title, place, script, main);
}

export function noticeHtml({ title, text }: { title: string; text: string }, place: PagePlace): string {
  const main = `<h1>${escaped(title)}</h1>
<p>${escaped(text)}</p>
<p><a href="${place.root}console">To the start page</a></p>`;
  return html(title, place, '', main);
}

function html(title: string, { root, files }: PagePlace, script: string, main: string): string {
  const href = (name: string): string => `${root}console/static/${name}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escaped(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" type="image/svg+xml" href="${href(files.icon.name)}">
<link rel="stylesheet" href="${href(files.style.name)}">
${script}</head>
<body>
<header><a href="${root}console"><img src="${href(files.icon.name)}" alt="" width="28" height="28">Key management service</a></header>
<main>
${main}
</main>
<div role="status"></div>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
