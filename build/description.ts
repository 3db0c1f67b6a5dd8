// Builds the API description's files: the OpenAPI document, the pages made from it, and their style sheet, script and
// icon. For the executable they become assets; a server that runs from the sources builds them on first request.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { openApiDocument } from '../src/description/openapi-document.ts';
import { docsPages, type SearchEntry } from '../src/description/page.ts';
import { version } from '../src/version.ts';
import { forPages } from './console.ts';
import { paths } from './paths.ts';

export interface DescriptionSources {
  /** OpenAPI 3.1, JSON. */
  readonly document: string;
  /** HTML of the index page. */
  readonly page: string;
  /** HTML of the other pages, by name. */
  readonly pages: Readonly<Record<string, string>>;
  readonly style: string;
  readonly script: string;
  readonly icon: string;
}

export async function makeDescription(): Promise<DescriptionSources> {
  const document = openApiDocument(version);
  const { home: page, pages, index } = await docsPages(document);
  const [script, style, icon] = await Promise.all([
    scriptWith(index),
    readFile(join(paths.root, 'src/description/page.css'), 'utf8'),
    readFile(join(paths.console, 'icon.svg'), 'utf8'),
  ]);
  return { document: `${JSON.stringify(document)}\n`, page, pages, style, script, icon };
}

async function scriptWith(index: readonly SearchEntry[]): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: paths.root,
    entryPoints: [join(paths.root, 'src/description/docs-script.ts')],
    ...forPages,
    define: { searchIndex: JSON.stringify(index) },
  });
  const [output] = outputFiles;
  if (!output) throw new Error('src/description/docs-script.ts gave no output');
  return output.text;
}
