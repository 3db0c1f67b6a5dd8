// The console's files as the app serves them: read once, when first asked for, and named by what is in them.
import { toHex, utf8 } from '../crypto/encoding.ts';
import { sha256 } from '../crypto/hash.ts';
import type { ConsoleFile, ConsoleFiles } from '../http/console.ts';
import { consoleSources } from './runtime.ts';

export function consoleFiles(): () => Promise<ConsoleFiles> {
  let files: Promise<ConsoleFiles> | undefined;
  return () => {
    files ??= readFiles();
    return files;
  };
}

async function readFiles(): Promise<ConsoleFiles> {
  const { script, style, icon } = await consoleSources();
  return {
    script: named('console', 'js', 'text/javascript; charset=utf-8', script),
    style: named('console', 'css', 'text/css; charset=utf-8', style),
    icon: named('icon', 'svg', 'image/svg+xml', icon),
  };
}

function named(stem: string, ending: string, contentType: string, text: string): ConsoleFile {
  const content = new Uint8Array(utf8(text));
  return { name: `${stem}-${toHex(sha256(content)).slice(0, 16)}.${ending}`, contentType, content };
}
