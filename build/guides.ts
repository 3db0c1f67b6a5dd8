// The guides in the executable: the documents for people who run or use it, each with its name and title.
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { paths } from './paths.ts';

export interface Guide {
  readonly name: string;
  readonly title: string;
  /** Markdown. */
  readonly text: string;
}

/** Documents for those who change the program. */
const left: ReadonlySet<string> = new Set(['architecture', 'building', 'dependencies']);

/** In the order of their names; `src/platform/program-files.ts` recognises them by their shape. */
export async function readGuides(): Promise<readonly Guide[]> {
  const files = (await readdir(paths.docs)).filter((file) => file.endsWith('.md')).sort();
  const guides = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(paths.docs, file), 'utf8');
      const [, title = file] = /^# (.+)$/m.exec(text) ?? [];
      return { name: basename(file, '.md'), title, text };
    }),
  );
  return guides.filter(({ name }) => !left.has(name));
}
