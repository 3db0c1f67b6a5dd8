// The API description, as a document for programs and as a page for people: public files that were made beforehand.
import { publicEndpoints } from '../api/health.ts';
import { sealedError } from './admission.ts';
import type { AppContext, AppDeps } from './deps.ts';
import type { Served } from './request-log.ts';
import { type Outcome, refused } from './respond.ts';
import { tenantOf } from './tenants.ts';

type Bytes = Uint8Array<ArrayBuffer>;

export interface DescriptionFiles {
  /** OpenAPI 3.1, JSON. */
  readonly document: Bytes;
  /** HTML, which refers to the two below. */
  readonly page: Bytes;
  readonly style: Bytes;
  readonly icon: Bytes;
}

export interface DescriptionRoute {
  readonly method: 'GET';
  readonly path: string;
  readonly serve: (c: AppContext) => Promise<Served>;
}

/** None where there are no files. */
export function descriptionRoutes(deps: AppDeps): readonly DescriptionRoute[] {
  const { descriptionFiles } = deps;
  if (!descriptionFiles) return [];
  const { description, docs } = publicEndpoints;
  const route = (path: string, file: keyof DescriptionFiles, headers: Readonly<Record<string, string>>) => ({
    method: 'GET' as const,
    path,
    serve: (c: AppContext) => guarded(deps, c, async () => (await descriptionFiles())[file], headers),
  });
  return [
    route(description.path, 'document', {}),
    route(docs.path, 'page', pageHeaders),
    route(`${docs.path}/style.css`, 'style', { 'Content-Type': 'text/css; charset=utf-8' }),
    route(`${docs.path}/icon.svg`, 'icon', { 'Content-Type': 'image/svg+xml' }),
  ];
}

async function guarded(
  deps: AppDeps,
  c: AppContext,
  read: () => Promise<Bytes>,
  headers: Readonly<Record<string, string>>,
): Promise<Served> {
  try {
    if (deps.sealed?.()) throw sealedError;
    tenantOf(deps, c);
    const outcome: Outcome = { status: 200, body: {}, content: await read(), headers };
    return { outcome };
  } catch (error) {
    return { outcome: refused(error) };
  }
}

const pageHeaders: Readonly<Record<string, string>> = {
  'Content-Type': publicEndpoints.docs.text,
  'Content-Security-Policy': [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
};
