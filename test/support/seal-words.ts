// The text of a seal file, for tests of what stands there in clear.
import { readFileSync } from 'node:fs';

/** The file without its keys in base64url, in which any short word may appear by chance. */
export function sealWords(path: string): string {
  return readFileSync(path, 'utf8').replace(/"[\w-]{43,}"/g, '""');
}
