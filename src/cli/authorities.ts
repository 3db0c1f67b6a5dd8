// Reads files of certificate authorities that options name.
import { readPem, readSmallFile } from './files.ts';
import { type Io, say } from './io.ts';

/** Maximum bytes: twenty times a system's own bundle. */
const mostAuthorities = 4 * 1024 * 1024;

/** The certificates in a PEM file of authorities. Unreadable ones are left out and named on stderr. */
export async function readAuthorities(io: Io, path: string): Promise<string> {
  const text = await readPem(path, 'certificates', (path, what) =>
    readSmallFile(path, what, undefined, mostAuthorities),
  );
  const { authoritiesIn } = await import('../platform/authorities.ts');
  const warnings: string[] = [];
  const pem = authoritiesIn(text, path, (message) => warnings.push(message));
  for (const warning of warnings) await say(io, `warning: ${warning}`);
  return pem;
}
