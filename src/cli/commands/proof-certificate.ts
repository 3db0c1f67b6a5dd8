// Client certificates as proofs of API keys, on the command line: one that there is, an authority and a name, or one
// that the appliance issues into a directory.
import { rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Proof } from '../../api/proofs.ts';
import type { InputOf } from '../../client/client.ts';
import { pkcs12File } from '../../client/pkcs12-file.ts';
import { KmsError } from '../../errors.ts';
import { epochTimeOf } from '../../model/timestamp.ts';
import { type Cli, type CliOf, given } from '../command.ts';
import { fileError, type NewFile, newFile, readPem } from '../files.ts';
import type { proof } from '../grammar/proof.ts';
import { pathFrom } from '../io.ts';

type AddCli = CliOf<typeof proof.add>;

export const ofCertificates = ['--san', '--file', '--issue', '--out', '--days'] as const;

/** Fields of a proof by certificates. Throws `usage` unless it is one of the three ways. */
export async function certificateFrom(cli: AddCli): Promise<Partial<InputOf<'addProof'>>> {
  const file = cli.get('--file');
  const ca = cli.get('--ca');
  const issue = cli.get('--issue');
  if ([file !== undefined, ca !== undefined, issue].filter(Boolean).length !== 1) {
    throw cli.wrong('expected --file CERT, --ca FILE with --san NAME, or --issue with --out DIR');
  }
  if (ca !== undefined && cli.get('--san') === undefined)
    throw cli.wrong('--san is missing: the name in the certificates');
  if (ca === undefined && cli.isTyped('--san')) throw cli.wrong('--san goes with --ca');
  if (issue && cli.get('--out') === undefined) throw cli.wrong('--out is missing: the directory for the certificate');
  const idle = (['--out', '--days'] as const).find((option) => !issue && cli.isTyped(option));
  if (idle !== undefined) throw cli.wrong(`${idle} goes with --issue`);
  return given({
    certificate: file === undefined ? undefined : await certificatesIn(cli, file, 'the certificate'),
    ca: ca === undefined ? undefined : await certificatesIn(cli, ca, 'the authority'),
    san: cli.get('--san'),
    issue: issue || undefined,
    days: cli.get('--days'),
  });
}

/** Authorities of an issuer's address. */
export function authoritiesFrom(cli: Cli, file: string): Promise<string> {
  return certificatesIn(cli, file, 'the authorities');
}

/** The text of a PEM file of certificates. A private key in it stays on this machine. */
async function certificatesIn(cli: Cli, file: string, what: string): Promise<string> {
  const text = await readPem(pathFrom(cli.io, file), what);
  if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(text)) {
    throw new KmsError('refused', `${file} has a private key in it, which the appliance must not get`, {
      hint: `give the certificates alone: \`openssl x509 -in ${file}\` prints the first`,
    });
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw new KmsError('invalid', `${file}: expected ${what} in PEM, found no BEGIN CERTIFICATE`, {
    hint: adviceFor(file, text),
  });
}

/** How to get the certificate out of a file of another form. */
function adviceFor(file: string, text: string): string {
  if (/-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----/.test(text)) {
    return 'it is a request for a certificate: give the certificate that an authority makes of it';
  }
  if (/\.(?:p12|pfx)$/i.test(file)) {
    return `\`openssl pkcs12 -in ${file} -nokeys -clcerts -out client.crt\` takes the certificate out of it`;
  }
  return `\`openssl x509 -inform der -in ${file}\` makes PEM of DER`;
}

/** Said with each proof by certificates: the command does not know how the appliance is reached by programs. */
export const onlyOverTls =
  'certificates count on connections with TLS to the appliance itself, not through a proxy that ends TLS (--behind-proxy)';

/** Whether the proof has ended: an issued certificate, or an authority. A pinned key has no end. */
export function hasEnded({ notAfter, issued, san }: Proof, now: number): boolean {
  return (issued === true || san !== undefined) && notAfter !== undefined && isPast(notAfter, now);
}

/** The certificates that it trusts, in a line. */
export function certificateText({ san, authority, fingerprint = '', issued }: Proof): string {
  const key = `SHA-256 ${fingerprint.slice(0, 16)}…`;
  return san === undefined ? `${issued ? 'issued here' : 'pinned'}, ${key}` : `${san} by ${authority ?? key}`;
}

/** The last second counts. */
function isPast(notAfter: string, now: number): boolean {
  return epochTimeOf(notAfter) + 1000 <= now;
}

interface Issued {
  readonly certificate?: string;
  readonly privateKey?: string;
  readonly caCertificate?: string;
}

interface IssuedFiles {
  /** `name` is what software lists the key in client.p12 as; `more` are contents of further files, in their order. */
  keep(issued: Issued, name: string, ...more: readonly string[]): Promise<void>;
  discard(): Promise<void>;
}

const issuedFiles = [
  ['client.crt', 0o644],
  ['client.key', 0o600],
  ['ca.crt', 0o644],
  ['client.p12', 0o600],
  ['client.p12.password', 0o600],
] as const;

/** A name of free text as software of others takes it. */
export function plainName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9._-]+/g, '-');
}

/** New files for an issued certificate, before it is issued: a key that cannot be saved is useless. */
export async function filesFor(
  cli: Pick<AddCli, 'io'>,
  out: string,
  more: readonly (readonly [name: string, mode: number])[] = [],
): Promise<IssuedFiles> {
  const directory = pathFrom(cli.io, out);
  const { makeDirs } = await import('../../platform/data-dir.ts');
  const made = await makeDirs(directory).catch((error) => {
    throw fileError('make the directory', directory, error, 'name one in which files can be made');
  });
  const files: NewFile[] = [];
  const discard = async (): Promise<void> => {
    for (const each of files) await each.discard();
    // Directories that were there stay, and so does one that somebody else put something into.
    for (let each = directory; made !== undefined && each.length >= made.length; each = dirname(each)) {
      await rmdir(each).catch(() => {});
    }
  };
  try {
    for (const [name, mode] of [...issuedFiles, ...more]) files.push(await newFile(join(directory, name), mode));
  } catch (error) {
    await discard();
    throw error;
  }
  return {
    discard,
    async keep(issued, name, ...others) {
      const { certificate = '', privateKey = '', caCertificate = '' } = issued;
      const { bytes, password } = pkcs12File(issued, plainName(name));
      const contents = [certificate, privateKey, caCertificate, bytes, `${password}\n`, ...others];
      for (const [n, each] of files.entries()) await each.handle.writeFile(contents[n] ?? '');
      for (const each of files) await each.commit();
    },
  };
}
