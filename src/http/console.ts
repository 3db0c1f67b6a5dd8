// The console's own files: a page for each of its paths, all of them one script and one style sheet, and those files under names that
// change with their content. Public; what is behind the pages is the API.
import { consolePages } from '../api/console-pages.ts';
import { KmsError } from '../errors.ts';
import { sealedError } from './admission.ts';
import { noticeHtml, pageHtml } from './console-html.ts';
import type { AppContext, AppDeps } from './deps.ts';
import type { Served } from './request-log.ts';
import { type Outcome, refused } from './respond.ts';
import { tenantOf } from './tenants.ts';
import { unknownPath } from './unmatched.ts';

export interface ConsoleFile {
  /** Changes with the content. */
  readonly name: string;
  readonly contentType: string;
  readonly content: Uint8Array<ArrayBuffer>;
}

export interface ConsoleFiles {
  readonly script: ConsoleFile;
  readonly style: ConsoleFile;
  readonly icon: ConsoleFile;
}

export interface ConsoleRoute {
  readonly method: 'GET';
  readonly path: string;
  readonly serve: (c: AppContext) => Promise<Served>;
}

/** Where a file's name is appended. */
const assets = '/console/static/';

export function consoleRoutes(deps: AppDeps): readonly ConsoleRoute[] {
  const { consoleFiles } = deps;
  if (!consoleFiles) return [];
  const pages = [...Object.values(consolePages), { ...consolePages.home, path: '/console/' }];
  return [
    ...pages.map(({ path, title }): ConsoleRoute => {
      const serve = async () => page(200, pageHtml(title, { root: rootFrom(path), files: await consoleFiles() }));
      return { method: 'GET', path, serve: (c) => guarded(deps, c, serve) };
    }),
    { method: 'GET', path: `${assets}{name}`, serve: async (c) => ({ outcome: file(await consoleFiles(), c) }) },
  ];
}

/** For every other path below the console: a page for whoever wants one, JSON for the rest. */
export function serveUnknownPage(deps: AppDeps): (c: AppContext) => Promise<Served> {
  return (c) =>
    guarded(deps, c, async () => {
      throw unknownPath;
    });
}

/** What is wrong is told on a page where one was asked for. */
async function guarded(deps: AppDeps, c: AppContext, serve: () => Promise<Outcome>): Promise<Served> {
  try {
    if (deps.sealed?.()) throw sealedError;
    tenantOf(deps, c);
    return { outcome: await serve() };
  } catch (error) {
    const outcome = refused(error);
    if (!deps.consoleFiles || !wantsPage(c) || !(error instanceof KmsError)) return { outcome };
    const text = noticeHtml(noticeOf(error), { root: rootFrom(c.req.path), files: await deps.consoleFiles() });
    return { outcome: { ...page(outcome.status, text), cause: outcome.cause } };
  }
}

function noticeOf({ code, message }: KmsError): { title: string; text: string } {
  if (code === 'sealed') {
    return { title: 'The service is sealed', text: 'Nobody can use it until an administrator has unsealed it.' };
  }
  if (code === 'not-found') return { title: 'Nothing is here', text: 'There is no page at this address.' };
  return { title: 'This page cannot be shown', text: message };
}

function page(status: number, html: string): Outcome {
  return { status, body: {}, content: html, headers: pageHeaders };
}

function file({ script, style, icon }: ConsoleFiles, c: AppContext): Outcome {
  const name = c.req.param('name');
  const found = [script, style, icon].find((each) => each.name === name);
  if (!found) return refused(unknownPath);
  const tag = `"${found.name}"`;
  const headers = { ...fileHeaders, ETag: tag, 'Content-Type': found.contentType };
  if (c.req.header('if-none-match') === tag) return { status: 304, body: {}, content: null, headers };
  return { status: 200, body: {}, content: found.content, headers };
}

/** From a path to the appliance's address, which may have a path of its own in front. */
function rootFrom(path: string): string {
  return '../'.repeat(path.split('/').length - 2) || './';
}

function wantsPage(c: AppContext): boolean {
  return c.req.header('accept')?.includes('text/html') ?? false;
}

const pageHeaders: Readonly<Record<string, string>> = {
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
