// A secret given in a file, on stdin, at a prompt, in the environment or in JSON. One rule for all of them, so that the
// same bytes are the same secret wherever they come from, or are refused everywhere: one line of UTF-8, without its
// line end (LF or CRLF). Nothing else is stripped.
import { KmsError } from '../errors.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The secret in these bytes, or in a text that the platform already decoded. `source` names it in errors, which never
 * show its content. Throws `invalid`.
 */
export function secretOf(given: Uint8Array | string, source: string): string {
  const line = textOf(given, source).replace(/\r?\n$/, '');
  const refused = (what: string, hint: string): KmsError => new KmsError('invalid', `${source}: ${what}`, { hint });
  if (line.startsWith('\ufeff')) {
    throw refused('it begins with a byte order mark, which nobody types', 'save it as UTF-8 without one');
  }
  if (/[\r\n]/.test(line)) {
    throw refused('expected one line, found more', 'put the secret there alone; one line end behind it does not count');
  }
  if (line.includes('\0')) throw refused('it has a byte 0 in it', 'give a secret that can be typed');
  return line;
}

/** The non-blank lines, each a secret. Throws `invalid`. */
export function secretLines(given: Uint8Array | string, source: string): readonly string[] {
  const lines = textOf(given, source).split('\n');
  return lines.map((line) => secretOf(line.replace(/\r$/, ''), source)).filter((line) => line.trim() !== '');
}

/**
 * The platform replaces invalid UTF-8 from the environment, the terminal and the command line with U+FFFD, so that
 * different secrets would become the same: one that contains U+FFFD is refused.
 */
function textOf(given: Uint8Array | string, source: string): string {
  let text: string;
  try {
    text = typeof given === 'string' ? given : decoder.decode(given);
  } catch {
    text = '\ufffd';
  }
  if (text.isWellFormed() && !text.includes('\ufffd')) return text;
  throw new KmsError('invalid', `${source}: expected UTF-8, found bytes that are not, or the character U+FFFD`, {
    hint: 'give it in UTF-8; a terminal, an editor or a file in another encoding changes what is typed',
  });
}
