// A secret as somebody gives it: in a file, on stdin, at a prompt, in the environment, in JSON. One rule for all of
// them, so that the same bytes are the same secret wherever they come from, or are refused everywhere: one line of
// UTF-8, whose end (LF or CRLF) does not count. Nothing else is taken away.
import { KmsError } from '../errors.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The secret in these bytes, or in a text that the platform made of bytes already. `source` is how errors call it,
 * which show nothing of it. Throws `invalid`.
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

/** The lines that say something, each a secret. Throws `invalid`. */
export function secretLines(given: Uint8Array | string, source: string): readonly string[] {
  const lines = textOf(given, source).split('\n');
  return lines.map((line) => secretOf(line.replace(/\r$/, ''), source)).filter((line) => line.trim() !== '');
}

/**
 * The platform puts U+FFFD in place of what is no UTF-8 in the environment, at a terminal and on the command line, so
 * that many secrets would be one: where it stands in a secret, nobody can tell which was meant.
 */
function textOf(given: Uint8Array | string, source: string): string {
  let text: string;
  try {
    text = typeof given === 'string' ? given : decoder.decode(given);
  } catch {
    text = '\ufffd';
  }
  if (text.isWellFormed() && !text.includes('\ufffd')) return text;
  throw new KmsError('invalid', `${source}: expected UTF-8, found bytes that are none, or the character U+FFFD`, {
    hint: 'give it in UTF-8; a terminal, an editor or a file in another encoding changes what is typed',
  });
}
