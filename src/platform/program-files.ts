// The program's own files: SQLite's WebAssembly, the code of its threads, the console, the API description and the
// third-party attribution. They are assets of the single executable; in a checkout they are found in or built from the
// sources.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import sea from 'node:sea';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { brotliDecompressSync } from 'node:zlib';
import { toHex, utf8 } from '../crypto/bytes.ts';
import { sha256 } from '../crypto/hash.ts';
import type { ConsoleFile, ConsoleFiles, DescriptionFiles, Guide } from '../model/program-files.ts';
import { cryptoInUse } from './native-crypto.ts';
import type { Job, WorkerData } from './threads/jobs.ts';

/** Whether this is the released executable, not a checkout. */
export function isSingleExecutable(): boolean {
  return sea.isSea();
}

/** The content of sql.js's sql-wasm.wasm. */
export async function sqlWasm(): Promise<Uint8Array> {
  if (sea.isSea()) return new Uint8Array(sea.getRawAsset('sql-wasm.wasm'));
  return readFile(createRequire(import.meta.url).resolve('sql.js/dist/sql-wasm.wasm'));
}

/**
 * Size in megabytes of each semi-space of a thread's young generation. Little survives in it, and with the 16 MB of the
 * serving thread a checkpoint would hold 26 MB more until its thread ends. Checks of segments take hours, for which no
 * request waits.
 */
const young = (work: Job): number => (work.kind === 'segments' ? 1 : 4);
/** Megabytes of a thread's old generation before V8 first collects it. */
const old = 8;

/** Starts a thread with the code of worker.ts, which reads `work` and uses the same crypto as this process. */
export function startWorker<J extends Job>(work: J): Worker {
  // Flags are global and read when a thread starts, perhaps after the next one was requested, so they are the same for
  // all. The serving thread's semi-space size would override each thread's limits.
  setFlagsFromString('--max-semi-space-size=0');
  setFlagsFromString(`--initial-old-space-size=${old}`);
  const options = {
    workerData: { work, crypto: cryptoInUse().by } satisfies WorkerData,
    // V8 gives a third to each semi-space, and a third to large objects.
    resourceLimits: { maxYoungGenerationSizeMb: 3 * young(work) },
  };
  if (sea.isSea()) return new Worker(sea.getAsset('worker.js', 'utf8'), { ...options, eval: true });
  return new Worker(new URL('../appliance/worker.ts', import.meta.url), options);
}

/** Read once, on demand, and named by a hash of the content. */
export function consoleFiles(): () => Promise<ConsoleFiles> {
  let files: Promise<ConsoleFiles> | undefined;
  return () => {
    files ??= readConsole();
    return files;
  };
}

async function readConsole(): Promise<ConsoleFiles> {
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

/** Texts of the console's files. */
interface ConsoleSources {
  readonly script: string;
  readonly style: string;
  readonly icon: string;
}

/** In a checkout they are built from the sources at each start. */
async function consoleSources(): Promise<ConsoleSources> {
  if (sea.isSea()) {
    const text = (name: string): string => sea.getAsset(name, 'utf8');
    return { script: text('console.js'), style: text('console.css'), icon: text('icon.svg') };
  }
  const bundler: unknown = await import(new URL('../../build/console.ts', import.meta.url).href);
  // Cast: the build is not part of the bundle, so only its shape is known.
  return (bundler as { bundleConsole(): Promise<ConsoleSources> }).bundleConsole();
}

/** Read once, on demand. */
export function descriptionFiles(): () => Promise<DescriptionFiles> {
  let files: Promise<DescriptionFiles> | undefined;
  return () => {
    files ??= readDescription();
    return files;
  };
}

async function readDescription(): Promise<DescriptionFiles> {
  const { document, page, pages, style, script, icon } = await descriptionSources();
  const bytes = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(utf8(text));
  return {
    document: bytes(document),
    page: bytes(page),
    pages: new Map(Object.entries(pages).map(([name, text]) => [name, bytes(text)])),
    style: bytes(style),
    script: bytes(script),
    icon: bytes(icon),
  };
}

/** Texts of the API description's files. */
interface DescriptionSources {
  /** OpenAPI 3.1 in JSON. */
  readonly document: string;
  /** HTML. */
  readonly page: string;
  /** HTML by name. */
  readonly pages: Readonly<Record<string, string>>;
  readonly style: string;
  readonly script: string;
  readonly icon: string;
}

/** In a checkout they are built from the sources. */
async function descriptionSources(): Promise<DescriptionSources> {
  if (sea.isSea()) {
    const text = (name: string): string => sea.getAsset(name, 'utf8');
    return {
      document: text('openapi.json'),
      page: text('docs.html'),
      pages: JSON.parse(text('docs.json')),
      style: text('docs.css'),
      script: text('docs.js'),
      icon: text('icon.svg'),
    };
  }
  const maker: unknown = await import(new URL('../../build/description.ts', import.meta.url).href);
  // Cast: the build is not part of the bundle, so only its shape is known.
  return (maker as { makeDescription(): Promise<DescriptionSources> }).makeDescription();
}

/** The guides, by name; compressed in the executable. In a checkout they are read from its documents. */
export async function guides(): Promise<readonly Guide[]> {
  if (sea.isSea()) {
    const bytes = brotliDecompressSync(new Uint8Array(sea.getRawAsset('guides.json.br')));
    return JSON.parse(bytes.toString('utf8'));
  }
  const reader: unknown = await import(new URL('../../build/guides.ts', import.meta.url).href);
  // Cast: the build is not part of the bundle, so only its shape is known.
  return (reader as { readGuides(): Promise<readonly Guide[]> }).readGuides();
}

/** Third-party attribution (licences, SBOM). */
interface Attribution {
  /** JSON: name, version, licence and its text of every third-party part. */
  readonly thirdParties: string;
  /** CycloneDX JSON. */
  readonly sbom: string;
}

/** In a checkout it is derived from the sources of a build. */
export async function attribution(): Promise<Attribution> {
  if (sea.isSea()) {
    return { thirdParties: sea.getAsset('third-parties.json', 'utf8'), sbom: sea.getAsset('sbom.json', 'utf8') };
  }
  const bundler: unknown = await import(new URL('../../build/bundle.ts', import.meta.url).href);
  // Cast: the build is not part of the bundle, so only its shape is known.
  return (bundler as { attributionOfSources(): Promise<Attribution> }).attributionOfSources();
}
