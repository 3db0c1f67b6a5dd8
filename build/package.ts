// Packages dist/kms for distribution, as dist/packages, with checksums and signatures. The same executable gives the
// same bytes again. Run by scripts/package.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ed25519PublicKey } from '../src/crypto/ed25519.ts';
import { formatKeyPair, minisign, parseSigningKey, type SigningKey } from '../src/crypto/minisign.ts';
import {
  executableName,
  manifestName,
  ownFormats,
  type ReleaseManifest,
  signatureName,
} from '../src/upgrade/release.ts';
import { version } from '../src/version.ts';
import { type Entry, gzip, tar } from './archives.ts';
import { type DebianOptions, debianPackage, type Parts } from './debian.ts';
import { paths } from './paths.ts';

const say = (line: string): void => void process.stderr.write(`kms: ${line}\n`);

interface PackageOptions extends DebianOptions {
  /** Nothing is signed if absent. */
  readonly key?: SigningKey | undefined;
  readonly compose: string;
}

/** All files of a release, by name. */
export function packages(parts: Parts, options: PackageOptions): ReadonlyMap<string, Uint8Array> {
  const { time, key, compose } = options;
  const stem = `kms-${parts.version}-linux-${parts.arch}`;
  const sign = (name: string, bytes: Uint8Array): readonly [string, Buffer][] => {
    const comment = `timestamp:${time}\tfile:${name}\tkms ${parts.version} linux-${parts.arch}`;
    return key === undefined ? [] : [[`${name}.minisig`, Buffer.from(minisign(key, bytes, comment))]];
  };
  const content = contentOf(parts);
  const manifest = Buffer.from(manifestOf(parts, content));
  const signature = sign(manifestName, manifest).map(([path, bytes]) => ({ path, mode: 0o644, bytes }));
  const top = [{ path: manifestName, mode: 0o644, bytes: manifest }, ...signature];
  const deb = debianPackage(parts, options);
  const files = new Map<string, Uint8Array>([
    [deb.name, deb.bytes],
    [`${stem}.tar.gz`, gzip(tar([{ path: stem, mode: 0o755 }, ...inside([...content, ...top], stem)], time))],
    [`${stem}.cdx.json`, Buffer.from(parts.sbom)],
    ['compose.yaml', Buffer.from(compose)],
    [manifestName, manifest],
    ...signature.map(({ bytes }): [string, Buffer] => [signatureName, bytes]),
  ]);
  const sums = Buffer.from([...files].map(([name, bytes]) => `${sha256(bytes)}  ${name}\n`).join(''));
  return new Map([...files, ['SHA256SUMS', sums], ...sign('SHA256SUMS', sums)]);
}

function inside(entries: readonly Entry[], dir: string): Entry[] {
  return entries.map((entry) => ({ ...entry, path: `${dir}/${entry.path}` }));
}

/** Entries of the tarball. */
function contentOf(parts: Parts): readonly (Entry & { readonly bytes: Uint8Array })[] {
  const text = (path: string, content: string) => ({ path, mode: 0o644, bytes: Buffer.from(content) });
  return [
    { path: executableName, mode: 0o755, bytes: parts.executable },
    text('kms.service', parts.unit),
    text('kms-standby.service', parts.standbyUnit),
    text('kms.1', parts.manual),
    text('kms.bash', parts.completions.bash),
    text('_kms', parts.completions.zsh),
    text('kms.fish', parts.completions.fish),
    text('CHANGELOG.md', parts.changelog),
    text('LICENSES', parts.licenses),
    text('kms.cdx.json', parts.sbom),
  ];
}

function manifestOf(parts: Parts, content: readonly { readonly path: string; readonly bytes: Uint8Array }[]): string {
  const manifest: ReleaseManifest = {
    name: 'kms',
    version: parts.version,
    platform: `linux-${parts.arch}`,
    formats: ownFormats,
    files: content.map(({ path, bytes }) => ({ path, bytes: bytes.length, sha256: sha256(bytes) })),
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Contents of the packages; the executable itself prints those that it carries. */
function partsOf(executable: string): Parts {
  const says = (...args: string[]): string => execFileSync(executable, args, { encoding: 'utf8', maxBuffer: 1 << 26 });
  const file = (name: string): string => readFileSync(join(paths.root, name), 'utf8');
  return {
    version,
    arch: process.arch,
    executable: readFileSync(executable),
    unit: file('docs/systemd/kms.service'),
    standbyUnit: file('docs/systemd/kms-standby.service'),
    manual: says('man'),
    completions: { bash: says('completion', 'bash'), zsh: says('completion', 'zsh'), fish: says('completion', 'fish') },
    licenses: says('licenses'),
    sbom: says('licenses', '--sbom'),
    changelog: file('CHANGELOG.md'),
  };
}

/**
 * SOURCE_DATE_EPOCH, else the time of the last commit, else the earliest time that every archive format can express.
 */
function sourceTime(env: NodeJS.ProcessEnv): number {
  const given = env.SOURCE_DATE_EPOCH;
  if (given !== undefined && !/^\d{1,10}$/.test(given)) {
    throw new Error(`SOURCE_DATE_EPOCH: expected seconds since 1970, got "${given}"`);
  }
  const { stdout } = spawnSync('git', ['log', '-1', '--format=%ct'], { cwd: paths.root, encoding: 'utf8' });
  return Number(given ?? (/^\d+\s*$/.test(stdout ?? '') ? stdout : 315_532_800));
}

/**
 * The packager, from the variables that Debian's own tools read. By default the project, at a domain reserved for such
 * use (RFC 2606 §3) instead of a real address, since lintian wants a name and a plausible domain (`bogus-mail-host`).
 */
export function maintainerOf({ DEBFULLNAME, DEBEMAIL }: NodeJS.ProcessEnv): string {
  return `${DEBFULLNAME || 'kms maintainers'} <${DEBEMAIL || 'noreply@kms.example.org'}>`;
}

/** Reads the key from the named file, or from the variable itself. */
function signingKey(file: string | undefined, env: NodeJS.ProcessEnv): SigningKey | undefined {
  const name = file ?? env.KMS_SIGNING_KEY_FILE;
  if (name) return parseSigningKey(readFileSync(name, 'utf8'), name);
  return env.KMS_SIGNING_KEY ? parseSigningKey(env.KMS_SIGNING_KEY, 'KMS_SIGNING_KEY') : undefined;
}

/**
 * Writes a secret key without a password to `file` and the public key beside it. Refuses to overwrite existing files.
 */
function makeKey(file: string): void {
  const seed = randomBytes(32);
  const pair = formatKeyPair({ id: randomBytes(8), seed, key: ed25519PublicKey(seed) });
  writeFileSync(file, pair.secret, { mode: 0o600, flag: 'wx' });
  writeFileSync(`${file}.pub`, pair.public, { flag: 'wx' });
  say(`${file} signs; ${file}.pub is what \`kms upgrade --trusted-key\` and minisign take`);
}

function main(): void {
  const { env } = process;
  const { values } = parseArgs({
    options: {
      'signing-key': { type: 'string' },
      'new-key': { type: 'string' },
      revision: { type: 'string', default: '1' },
      out: { type: 'string', default: join(paths.dist, 'packages') },
    },
  });
  const { out, 'new-key': newKey } = values;
  if (newKey !== undefined) {
    makeKey(newKey);
    return;
  }
  if (!/^[1-9]\d{0,5}$/.test(values.revision)) throw new Error('--revision: expected a whole number from 1 on');
  const key = signingKey(values['signing-key'], env);
  const files = packages(partsOf(paths.executable), {
    time: sourceTime(env),
    revision: Number(values.revision),
    maintainer: maintainerOf(env),
    key,
    compose: readFileSync(join(paths.root, 'compose.yaml'), 'utf8'),
  });
  const draft = `${out}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  for (const [name, bytes] of files) writeFileSync(join(draft, name), bytes);
  rmSync(out, { recursive: true, force: true });
  renameSync(draft, out);
  for (const [name, bytes] of files) say(`${join(out, name)}: ${bytes.length} bytes`);
  if (!key) {
    say('not signed: give a secret key of minisign with --signing-key FILE, KMS_SIGNING_KEY_FILE or KMS_SIGNING_KEY;');
    say('`kms upgrade` takes only what is signed');
  }
}

if (import.meta.main) {
  try {
    main();
  } catch (error) {
    process.stderr.write(`kms: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
