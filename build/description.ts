// The API description's files: the OpenAPI document, the page made from it, and the page's style sheet and icon. For
// the executable they become assets; a server that runs from the sources makes them when they are first asked for.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openApiDocument } from '../src/description/openapi-document.ts';
import { docsPage } from '../src/description/page.ts';
import { version } from '../src/version.ts';
import { paths } from './paths.ts';

export interface DescriptionSources {
  /** OpenAPI 3.1, JSON. */
  readonly document: string;
  /** HTML. */
  readonly page: string;
  readonly style: string;
  readonly icon: string;
}

export async function makeDescription(): Promise<DescriptionSources> {
  const document = openApiDocument(version);
  const [page, style, icon] = await Promise.all([
    docsPage(document),
    readFile(join(paths.root, 'src/description/page.css'), 'utf8'),
    readFile(join(paths.console, 'icon.svg'), 'utf8'),
  ]);
  return { document: `${JSON.stringify(document)}\n`, page, style, icon };
}
