// Where the program finds its parts: in the single executable's assets, or among the files of a checkout.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import sea from 'node:sea';
import { Worker } from 'node:worker_threads';

/** The content of sql.js's sql-wasm.wasm. */
export async function sqlWasm(): Promise<Uint8Array> {
  if (sea.isSea()) return new Uint8Array(sea.getRawAsset('sql-wasm.wasm'));
  return readFile(createRequire(import.meta.url).resolve('sql.js/dist/sql-wasm.wasm'));
}

/** The texts of the console's files. */
export interface ConsoleSources {
  readonly script: string;
  readonly style: string;
  readonly icon: string;
}

/** In a checkout they are made from the sources at each start, without a build. */
export async function consoleSources(): Promise<ConsoleSources> {
  if (sea.isSea()) {
    const text = (name: string): string => sea.getAsset(name, 'utf8');
    return { script: text('console.js'), style: text('console.css'), icon: text('icon.svg') };
  }
  const bundler: unknown = await import(new URL('../../build/console.ts', import.meta.url).href);
  // The build is no part of what is bundled, so it is known by its shape alone.
  return (bundler as { bundleConsole(): Promise<ConsoleSources> }).bundleConsole();
}

/** The texts of the API description's files. */
export interface DescriptionSources {
  /** OpenAPI 3.1, JSON. */
  readonly document: string;
  /** HTML. */
  readonly page: string;
  readonly style: string;
  readonly icon: string;
}

/** In a checkout they are made from the sources, without a build. */
export async function descriptionSources(): Promise<DescriptionSources> {
  if (sea.isSea()) {
    const text = (name: string): string => sea.getAsset(name, 'utf8');
    return { document: text('openapi.json'), page: text('docs.html'), style: text('docs.css'), icon: text('icon.svg') };
  }
  const maker: unknown = await import(new URL('../../build/description.ts', import.meta.url).href);
  // The build is no part of what is bundled, so it is known by its shape alone.
  return (maker as { makeDescription(): Promise<DescriptionSources> }).makeDescription();
}

/** Whose work is in the executable. */
export interface Attribution {
  /** JSON: name, version, license and its text of everything that is somebody else's. */
  readonly thirdParties: string;
  /** CycloneDX JSON. */
  readonly sbom: string;
}

/** In a checkout it is told from what a build would take in. */
export async function attribution(): Promise<Attribution> {
  if (sea.isSea()) {
    return { thirdParties: sea.getAsset('third-parties.json', 'utf8'), sbom: sea.getAsset('sbom.json', 'utf8') };
  }
  const bundler: unknown = await import(new URL('../../build/bundle.ts', import.meta.url).href);
  // The build is no part of what is bundled, so it is known by its shape alone.
  return (bundler as { attributionOfSources(): Promise<Attribution> }).attributionOfSources();
}

/** Starts a thread with the code of worker.ts, which reads `data`. */
export function startWorker(data: unknown, transfer: readonly ArrayBuffer[] = []): Worker {
  const options = { workerData: data, transferList: [...transfer] };
  if (sea.isSea()) return new Worker(sea.getAsset('worker.js', 'utf8'), { ...options, eval: true });
  return new Worker(new URL('./worker.ts', import.meta.url), options);
}
