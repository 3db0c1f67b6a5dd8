// The API description as the app serves it: read when first asked for.
import { utf8 } from '../crypto/encoding.ts';
import type { DescriptionFiles } from '../http/description.ts';
import { descriptionSources } from './runtime.ts';

export function descriptionFiles(): () => Promise<DescriptionFiles> {
  let files: Promise<DescriptionFiles> | undefined;
  return () => {
    files ??= readFiles();
    return files;
  };
}

async function readFiles(): Promise<DescriptionFiles> {
  const { document, page, style, icon } = await descriptionSources();
  const bytes = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(utf8(text));
  return { document: bytes(document), page: bytes(page), style: bytes(style), icon: bytes(icon) };
}
