// Pages are the public files for people: the console (a page for each of its paths, one script and one style sheet
// under names that change with their content) and the API description, as a document for programs and as a page. They
// are built beforehand; their HTML has no inline script or style, and the console's data all comes through the API.
import { consolePages } from '../api/console-pages.ts';
import { publicEndpoints } from '../api/system.ts';
import { KmsError } from '../errors.ts';
import type { Label } from '../model/label.ts';
import type { ConsoleFiles, DescriptionFiles } from '../model/program-files.ts';
import { sealedError } from './admission.ts';
import type { AppliancePort, State } from './appliance-port.ts';
import { escaped } from './escaping.ts';
import { GuideBook } from './guides/guide-pages.ts';
import { type ApiRequest, headerOf, queryOf } from './request.ts';
import { type Outcome, type RequestResult, refused, unknownPath } from './respond.ts';
import type { PathParams, ServedPath } from './route.ts';
import { resolveTenant, type TenantHandle } from './tenant-directory.ts';

/** File names are appended to this. */
const assets = '/console/static/';

export function consolePaths(appliance: AppliancePort): readonly ServedPath[] {
  const pages = [...Object.values(consolePages), { ...consolePages.home, path: '/console/' }];
  return [
    ...pages.map(({ path, title }): ServedPath => {
      const serve = async ({ store }: TenantHandle) => {
        const files = await appliance.consoleFiles();
        const hasUsers = await store.transaction(({ users }) => users.any());
        return consolePage(
          200,
          pageHtml(title, { root: rootFrom(path), files, label: appliance.label }, hasUsers ? undefined : 'new'),
        );
      };
      return { method: 'GET', path, serve: inConsole(appliance, serve) };
    }),
    {
      method: 'GET',
      path: `${assets}{name}`,
      serve: async (request, _state, params) => ({
        outcome: consoleFile(await appliance.consoleFiles(), request, params),
      }),
    },
  ];
}

/** Any other path below the console: a page for browsers, JSON for the rest. */
export function serveUnknownPage(appliance: AppliancePort): ServedPath['serve'] {
  return inConsole(appliance, () => Promise.reject(unknownPath));
}

/**
 * Serves public content of a tenant if the appliance is open and a tenant answers the host. `toPage` turns an error
 * into a page.
 */
async function guarded(
  state: State,
  request: ApiRequest,
  serve: (handle: TenantHandle) => Promise<Outcome>,
  toPage?: (error: KmsError, outcome: Outcome) => Promise<Outcome>,
): Promise<RequestResult> {
  try {
    if (state.sealed) throw sealedError;
    return { outcome: await serve(resolveTenant(state, request)) };
  } catch (error) {
    const outcome = refused(error);
    return { outcome: toPage && error instanceof KmsError ? await toPage(error, outcome) : outcome };
  }
}

/** `guarded` for the console: browsers get an error as a page, and while sealed the page with the unseal form. */
function inConsole(appliance: AppliancePort, serve: (handle: TenantHandle) => Promise<Outcome>): ServedPath['serve'] {
  return (request, state) =>
    guarded(state, request, serve, async (error, outcome) => {
      if (!headerOf(request, 'accept')?.includes('text/html')) return outcome;
      const place = { root: rootFrom(request.path), files: await appliance.consoleFiles(), label: appliance.label };
      const texts = errorTexts(error);
      const text =
        error.code === 'sealed'
          ? html(texts.title, place, scriptOf(place), textsHtml(texts), 'sealed')
          : errorHtml(texts, place);
      return { ...consolePage(outcome.status, text), cause: outcome.cause };
    });
}

function errorTexts({ code, message }: KmsError): Texts {
  if (code === 'sealed') {
    return {
      title: 'The service is sealed',
      text: 'Nobody can use it until an administrator unseals it: here, if the browser runs scripts, or with kms unseal.',
    };
  }
  if (code === 'not-found') return { title: 'Page not found', text: 'There is no page at this address.' };
  return { title: 'This page cannot be shown', text: message };
}

function consolePage(status: number, html: string): Outcome {
  return { status, body: {}, content: html, headers: consoleHeaders };
}

function consoleFile({ script, style, icon }: ConsoleFiles, request: ApiRequest, { name }: PathParams): Outcome {
  const found = [script, style, icon].find((each) => each.name === name);
  if (!found) return refused(unknownPath);
  const tag = `"${found.name}"`;
  const headers = { ...fileHeaders, ETag: tag, 'Content-Type': found.contentType };
  if (headerOf(request, 'if-none-match') === tag) return { status: 304, body: {}, content: null, headers };
  return { status: 200, body: {}, content: found.content, headers };
}

/** The way from a path back to the appliance's address, which may itself have a path. */
function rootFrom(path: string): string {
  return '../'.repeat(path.split('/').length - 2) || './';
}

const consoleHeaders: Readonly<Record<string, string>> = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

const fileHeaders: Readonly<Record<string, string>> = {
  'Cache-Control': 'public, max-age=31536000, immutable',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

interface PagePlace {
  /** The appliance's address as seen from the page, with a trailing slash. */
  readonly root: string;
  readonly files: ConsoleFiles;
  readonly label: Label | undefined;
}

/** The script's start: `new` while there is no user yet, `sealed` while the API is out of reach. */
type PageState = 'new' | 'sealed';

function pageHtml(title: string, place: PagePlace, state?: PageState): string {
  const main = `<noscript>
<h1>${escaped(title)}</h1>
<p>This page needs JavaScript: please allow it for this address and load the page again.</p>
</noscript>`;
  return html(title, place, scriptOf(place), main, state);
}

function scriptOf({ root, files }: PagePlace): string {
  return `<script type="module" src="${root}console/static/${files.script.name}"></script>\n`;
}

function errorHtml(texts: Texts, place: PagePlace): string {
  const main = `${textsHtml(texts)}
<p><a href="${place.root}console">To the start page</a></p>`;
  return html(texts.title, place, '', main);
}

interface Texts {
  readonly title: string;
  readonly text: string;
}

function textsHtml({ title, text }: Texts): string {
  return `<h1>${escaped(title)}</h1>
<p>${escaped(text)}</p>`;
}

function html(
  title: string,
  { root, files, label }: PagePlace,
  script: string,
  main: string,
  state?: PageState,
): string {
  const href = (name: string): string => `${root}console/static/${name}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escaped(label ? `${title} – ${label.text}` : title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" type="image/svg+xml" href="${href(files.icon.name)}">
<link rel="stylesheet" href="${href(files.style.name)}">
${script}</head>
<body>
<header><a href="${root}console"><img src="${href(files.icon.name)}" alt="" width="28" height="28"><span>kms</span></a>${label ? labelHtml(label) : ''}</header>
<main${state === undefined ? '' : ` data-state="${state}"`}>
${main}
</main>
<div role="status"></div>
</body>
</html>
`;
}

/** The console's script takes it from here. */
function labelHtml({ text, colour = 'grey' }: Label): string {
  return ` <strong data-label="${colour}" title="${escaped(text)}">${escaped(text)}</strong>`;
}

export function descriptionPaths(appliance: AppliancePort): readonly ServedPath[] {
  const { description, docs } = publicEndpoints;
  type Name = Exclude<keyof DescriptionFiles, 'pages'>;
  type Headers = Readonly<Record<string, string>>;
  const file = (name: Name, headers: Headers) => async (): Promise<Outcome> => {
    const { [name]: content } = await appliance.descriptionFiles();
    return { status: 200, body: {}, content, headers };
  };
  const at = (path: string, name: Name, headers: Headers): ServedPath => {
    const serve = file(name, headers);
    return { method: 'GET', path, serve: (request, state) => guarded(state, request, serve) };
  };
  const book = guideBook(appliance);
  const style = { 'Content-Type': 'text/css; charset=utf-8' };
  const icon = { 'Content-Type': 'image/svg+xml' };
  return [
    at(description.path, 'document', {}),
    at(docs.path, 'page', pageHeaders),
    { method: 'GET', path: `${docs.path}/style.css`, serve: evenSealed(file('style', style)) },
    at(`${docs.path}/script.js`, 'script', { 'Content-Type': 'text/javascript; charset=utf-8' }),
    { method: 'GET', path: `${docs.path}/icon.svg`, serve: evenSealed(file('icon', icon)) },
    {
      method: 'GET',
      path: `${docs.path}/guides`,
      serve: evenSealed(async (request) => guidePage((await book()).home(queryOf(request).q ?? ''))),
    },
    {
      method: 'GET',
      path: `${docs.path}/guides/{name}`,
      serve: evenSealed(async (_request, { name = '' }) => guidePage((await book()).guide(name))),
    },
    {
      method: 'GET',
      path: `${docs.path}/{name}`,
      serve: (request, state, { name = '' }) =>
        guarded(state, request, async () => {
          const content = (await appliance.descriptionFiles()).pages.get(name);
          return content ? { status: 200, body: {}, content, headers: pageHeaders } : refused(unknownPath);
        }),
    },
  ];
}

/** Serves a text of the program, which tells nothing of any tenant, while sealed too: one guide is about unsealing. */
function evenSealed(serve: (request: ApiRequest, params: PathParams) => Promise<Outcome>): ServedPath['serve'] {
  return async (request, state, params) => {
    const answer = (): Promise<Outcome> => serve(request, params);
    if (!state.sealed) return guarded(state, request, answer);
    return { outcome: await answer().catch(refused) };
  };
}

/** Made on demand; tried again if the guides could not be read. */
function guideBook(appliance: AppliancePort): () => Promise<GuideBook> {
  let made: Promise<GuideBook> | undefined;
  return () => {
    made ??= appliance.guides().then((guides) => new GuideBook(guides));
    made.catch(() => {
      made = undefined;
    });
    return made;
  };
}

function guidePage(content: string | undefined): Outcome {
  if (content === undefined) return refused(unknownPath);
  return { status: 200, body: {}, content, headers: guideHeaders };
}

const pageHeaders: Readonly<Record<string, string>> = {
  'Content-Type': publicEndpoints.docs.text,
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
};

/** The guides have a form to search with, and no script. */
const guideHeaders: Readonly<Record<string, string>> = {
  ...pageHeaders,
  'Content-Security-Policy': [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; '),
};
