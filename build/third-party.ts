// Third-party components of the executable: the packages in its bundles and the runtime, each with its licence.
// Packages that are only used in development are not among them.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import initSqlJs from 'sql.js';
import { paths } from './paths.ts';

export interface ThirdParty {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license: string;
  readonly text: string;
  /** Hexadecimal SHA-512 of the package as the registry has it. */
  readonly sha512: string | undefined;
}

interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly integrity?: string }>>;
}

/** SQLite comes inside sql.js. */
const sqlite = `The author disclaims copyright to this source code. In place of a legal notice, here is a blessing:

   May you do good and not evil.
   May you find forgiveness for yourself and forgive others.
   May you share freely, never taking more than you give.
`;

/** Some of the console's icons are Lucide's, as paths in src/console/parts/icon.tsx. */
const lucide = `ISC License

Copyright (c) 2026 Lucide Icons and Contributors

Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.

Of the icons here, info, lock and log-out are derived from the Feather project:

The MIT License (MIT)

Copyright (c) 2013-present Cole Bemis

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`;

/**
 * All third-party components. `inputs` are the names of all bundled files, relative to the project's root. Throws if a
 * package names no licence.
 */
export async function thirdParties(inputs: Iterable<string>): Promise<readonly ThirdParty[]> {
  const other = [
    runtime(),
    { name: 'SQLite', version: await sqliteVersion(), license: 'blessing', text: sqlite, sha512: undefined },
    { name: 'Lucide', version: '1.62.0', license: 'ISC AND MIT', text: lucide, sha512: undefined },
  ];
  return sorted([...packagesIn(inputs), ...other]);
}

/** Only the npm packages among the inputs. */
export function packagesIn(inputs: Iterable<string>): readonly ThirdParty[] {
  const lock = readJson<Lock>(join(paths.root, 'package-lock.json'));
  const dirs = new Set<string>();
  for (const input of inputs) {
    const [dir] = /^.*node_modules\/(@[^/]+\/)?[^/]+(?=\/)/.exec(input) ?? [];
    if (dir !== undefined) dirs.add(dir);
  }
  return sorted([...dirs].map((dir) => packageIn(dir, lock.packages[dir]?.integrity)));
}

function sorted(parts: ThirdParty[]): readonly ThirdParty[] {
  return parts.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function packageIn(dir: string, integrity: string | undefined): ThirdParty {
  const { name, version, license } = readJson<PackageJson>(join(paths.root, dir, 'package.json'));
  if (license === undefined) throw new Error(`${dir} names no licence`);
  return { name, version, license, text: licenseText(join(paths.root, dir)), sha512: sha512Of(integrity) };
}

/** Node's own licence includes those of everything in it. */
function runtime(): ThirdParty {
  const [dir] = ['node_modules/node/node_modules', 'node_modules'].flatMap((above) => {
    const found = join(paths.root, above, `node-${process.platform}-${process.arch}`);
    return existsSync(join(found, 'LICENSE')) ? [found] : [];
  });
  if (dir === undefined)
    throw new Error('the licence of Node.js is missing: remove node_modules and run scripts/install');
  return { name: 'Node.js', version: process.versions.node, license: 'MIT', text: licenseText(dir), sha512: undefined };
}

async function sqliteVersion(): Promise<string> {
  const { Database } = await initSqlJs();
  const [answer] = new Database().exec('SELECT sqlite_version()');
  return String(answer?.values[0]?.[0]);
}

/** Some packages have their licence only in the last section of their README. */
function licenseText(dir: string): string {
  const names = readdirSync(dir);
  const text = (name: string): string => readFileSync(join(dir, name), 'utf8').replaceAll('\r\n', '\n').trimEnd();
  const own = names.find((each) => /^(licen[cs]e|copying)(\.(md|txt))?$/i.test(each));
  if (own !== undefined) return text(own);
  const readme = names.find((each) => /^readme\.md$/i.test(each));
  const [, section] = /^#+ licen[cs]e\n+(.+)$/ims.exec(readme === undefined ? '' : text(readme)) ?? [];
  if (section === undefined) throw new Error(`${dir} has no text of its licence`);
  return section;
}

function sha512Of(integrity: string | undefined): string | undefined {
  const [, base64] = /^sha512-(\S+)/.exec(integrity ?? '') ?? [];
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64').toString('hex');
}

function readJson<T>(file: string): T {
  // Cast: npm's own formats.
  return JSON.parse(readFileSync(file, 'utf8')) as T;
}
