// Where the secrets of new objects go: files of a directory, each readable only by its owner and never overwritten, in
// clear or sealed to a recipient of age; or, sealed, the output of the command. None is ever shown in clear.
import { createHash, randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ageRecipient, sealToAge } from '../../client/age-file.ts';
import { KmsError, systemCode } from '../../errors.ts';
import { fileError, isDraft, isDraftOf, type NewFile, newFile, readSmallText } from '../files.ts';
import type { Secret } from './kind.ts';

export interface SecretPlaces {
  /** Throws `refused` if two secrets would have one file, also where file names do not tell letters by their case. */
  refuseTwins(objects: readonly { readonly name: string; readonly secrets: readonly string[] }[]): void;
  /**
   * Takes the places of an object's secrets, before it is made. Throws `refused` if one is taken; `isAgain` moves what
   * is there aside, which an earlier run has left.
   */
  reserve(kind: string, name: string, labels: readonly string[], isAgain?: boolean): Promise<ReservedPlaces>;
}

export interface ReservedPlaces {
  deliver(secret: Secret): Promise<void>;
  /** Removes what was delivered, or the secret with this label: the object was taken back. */
  withdraw(label?: string): Promise<void>;
  /** Gives back places that got no secret. */
  release(): Promise<void>;
  /** Secrets that were delivered. */
  readonly kept: readonly KeptSecret[];
}

/** A secret that was kept: its file, or the sealed text for the output. */
export interface KeptSecret {
  readonly kind: string;
  readonly name: string;
  readonly label: string;
  readonly file?: string;
  readonly sealed?: string;
}

interface PlaceOptions {
  readonly directory: string | undefined;
  /** A file with the recipient. */
  readonly recipient: string | undefined;
  /** Shows a sealed secret that has no file; it is kept once this resolves. */
  show(secret: KeptSecret & { readonly sealed: string }): Promise<void>;
}

/** Milliseconds after which the draft of a secret, which is written in seconds, is given up. */
const oldestDraft = 600_000;

/** Bytes of a file's name. */
const longestName = 200;

/** Undefined if neither is given. Throws `refused` or `invalid` if secrets could not be kept so. */
export async function secretPlaces({ directory, recipient, show }: PlaceOptions): Promise<SecretPlaces | undefined> {
  if (directory === undefined && recipient === undefined) return undefined;
  const to =
    recipient === undefined
      ? undefined
      : ageRecipient(recipientIn(await readSmallText(recipient, 'a recipient of age')));
  if (directory !== undefined) {
    await makeDirectory(directory);
    await removeDrafts(directory, (_, age) => age > oldestDraft);
  }
  const seal = (text: string): string =>
    to ? sealToAge(text, to, (length) => new Uint8Array(randomBytes(length))) : text;
  return {
    refuseTwins(objects) {
      if (directory === undefined) return;
      const seen = new Set<string>();
      for (const { name, secrets } of objects) {
        for (const label of secrets) {
          const file = fileName(name, label);
          if (!seen.has(file.toLowerCase())) {
            seen.add(file.toLowerCase());
            continue;
          }
          throw new KmsError('refused', `two secrets would be in ${file}; nothing was done`, {
            hint: 'apply the two objects in runs of their own, with another --secrets-out each',
          });
        }
      }
    },
    async reserve(kind, name, labels, isAgain = false) {
      const kept: KeptSecret[] = [];
      const files = new Map<string, { readonly path: string; readonly file: NewFile }>();
      const release = async (): Promise<void> => {
        for (const { file } of files.values()) await file.discard();
        files.clear();
      };
      for (const label of labels) {
        if (directory === undefined) break;
        const path = join(directory, `${fileName(name, label)}${to ? '.age' : ''}`);
        try {
          if (isAgain) {
            await moveAside(path);
            await removeDrafts(directory, (draft) => isDraftOf(draft, path));
          }
          files.set(label, { path, file: await newFile(path, 0o600, 'move it away: a secret is never overwritten') });
        } catch (error) {
          await release();
          throw error;
        }
      }
      return {
        kept,
        release,
        async deliver({ label, text }) {
          const place = files.get(label);
          if (!place) {
            if (directory !== undefined || !to) throw new KmsError('internal', `no place was reserved for ${label}`);
            const secret = { kind, name, label, sealed: seal(text) };
            await show(secret);
            kept.push(secret);
            return;
          }
          files.delete(label);
          try {
            await place.file.handle.writeFile(seal(text));
            await place.file.commit();
          } catch (error) {
            await place.file.discard();
            throw fileError('write', place.path, error);
          }
          kept.push({ kind, name, label, file: place.path });
        },
        async withdraw(label) {
          const gone = kept.filter((secret) => label === undefined || secret.label === label);
          for (const secret of gone) {
            kept.splice(kept.indexOf(secret), 1);
            if (secret.file !== undefined) await unlink(secret.file).catch(() => undefined);
          }
        },
      };
    },
  };
}

/**
 * Removes drafts of secrets that runs have left which were killed. Another run that still wanted one would notice that
 * it cannot keep the secret.
 */
async function removeDrafts(directory: string, isLeft: (name: string, age: number) => boolean): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    const path = join(directory, name);
    const found = isDraft(name) ? await lstat(path).catch(() => undefined) : undefined;
    if (found?.isFile() && isLeft(name, Date.now() - found.mtimeMs)) await unlink(path).catch(() => undefined);
  }
}

/** Gives the file, if there is one, the first free name with `.old` at its end. */
async function moveAside(path: string): Promise<void> {
  const isThere = (name: string) =>
    lstat(name).then(
      () => true,
      () => false,
    );
  if (!(await isThere(path))) return;
  let old = `${path}.old`;
  for (let n = 2; await isThere(old); n++) old = `${path}.old${n}`;
  await rename(path, old);
}

/** The line that is no comment. Throws `invalid` for several: only one could open what is sealed. */
function recipientIn(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  if (lines.length <= 1) return lines[0] ?? '';
  throw new KmsError('invalid', `expected one recipient in the file of --secrets-to, found ${lines.length}`);
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw fileError('make', path, error);
    if (!(await lstat(path)).isDirectory()) throw new KmsError('refused', `${path} is no directory of its own`);
  }
}

/** One name for each secret: letters, digits and a few marks stand for themselves, others are escaped. */
function fileName(name: string, label: string): string {
  const plain = (text: string): string =>
    [...Buffer.from(text)]
      .map((byte) => {
        const character = String.fromCharCode(byte);
        return /[A-Za-z0-9._@-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0').toUpperCase()}`;
      })
      .join('')
      .replace(/^\./, '%2E');
  const whole = `${plain(name)}.${plain(label)}`;
  if (whole.length <= longestName) return whole;
  const digest = createHash('sha256')
    .update(JSON.stringify([name, label]))
    .digest('hex')
    .slice(0, 16);
  return `${whole.slice(0, longestName - 60)}~${digest}.${plain(label).slice(-40)}`;
}
