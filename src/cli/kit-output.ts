// A recovery kit on its way out: into a file of its own, mode 0600, or onto the terminal with a QR code of its code.
import { renderSVG, renderUnicodeCompact } from 'uqr';
import { KmsError } from '../errors.ts';
import type { Cli } from './cli.ts';
import { type NewFile, newFile } from './files.ts';
import { say, write } from './io.ts';

export interface KitFiles {
  /** Writes kit and picture and gives the files their names. */
  commit(text: string, code: string): Promise<void>;
  discard(): Promise<void>;
}

const code = /kms-recovery-1(?:-[0-9a-z]{4})+/;

/** The code in the text of a kit. */
export function codeOf(text: string): string {
  const [found] = code.exec(text) ?? [];
  if (found === undefined) throw new KmsError('internal', 'a recovery kit without a code');
  return found;
}

/** Makes sure of the files before there is a kit. */
export async function kitFiles(text: string | undefined, svg: string | undefined): Promise<KitFiles> {
  const files: { readonly file: NewFile; readonly content: (kit: string, code: string) => string }[] = [];
  const discard = async (): Promise<void> => {
    for (const { file } of files) await file.discard();
  };
  try {
    if (text !== undefined) files.push({ file: await newFile(text, 0o600), content: (kit) => kit });
    if (svg !== undefined) {
      files.push({ file: await newFile(svg, 0o600), content: (_kit, code) => `${renderSVG(code, { ecc: 'M' })}\n` });
    }
  } catch (error) {
    await discard();
    throw error;
  }
  return {
    async commit(kit, code) {
      for (const { file, content } of files) {
        await file.handle.writeFile(content(kit, code));
        await file.commit();
      }
    },
    discard,
  };
}

/** On stdout; with the QR code where that is a terminal. */
export async function showKit(cli: Cli, kit: string): Promise<void> {
  const { stdout } = cli.io;
  await write(stdout, kit);
  if (stdout.isTTY) await write(stdout, `\n${renderUnicodeCompact(codeOf(kit), { ecc: 'M', border: 2 })}\n`);
  await say(cli.io, 'the recovery kit is shown this once: print it and keep it in a safe, apart from the backups');
}
