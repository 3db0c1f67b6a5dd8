// Files of certificate authorities, as options name them.
import { readPem, readSmallFile } from './files.ts';
import { type Io, say } from './io.ts';

/** Bytes: twenty times what a system's own bundle has. */
const mostAuthorities = 4 * 1024 * 1024;

/** The certificates of a file of authorities, PEM, without those that cannot be read, which are named on stderr. */
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
