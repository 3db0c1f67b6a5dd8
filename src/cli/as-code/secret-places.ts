// Where the secrets of new objects go: files of a directory, each readable only by its owner and never overwritten, in
// clear or sealed to a recipient of age; or, sealed, the output of the command. None is ever shown in clear.
import { createHash, randomBytes } from 'node:crypto';
import { lstat, mkdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ageRecipient, sealToAge } from '../../client/age-file.ts';
import { KmsError, systemCode } from '../../errors.ts';
import { fileError, type NewFile, newFile, readSmallText } from '../files.ts';
import type { Secret } from './kind.ts';

export interface SecretPlaces {
  /** Takes the places of an object's secrets, before it is made. Throws `refused` if one is taken. */
  reserve(kind: string, name: string, labels: readonly string[]): Promise<ReservedPlaces>;
}

export interface ReservedPlaces {
  deliver(secret: Secret): Promise<void>;
  /** Removes what was delivered: the object was taken back. */
  withdraw(): Promise<void>;
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
}

/** Bytes of a file's name. */
const longestName = 200;

/** Undefined if neither is given. Throws `refused` or `invalid` if secrets could not be kept so. */
export async function secretPlaces({ directory, recipient }: PlaceOptions): Promise<SecretPlaces | undefined> {
  if (directory === undefined && recipient === undefined) return undefined;
  const to =
    recipient === undefined
      ? undefined
      : ageRecipient(recipientIn(await readSmallText(recipient, 'a recipient of age')));
  if (directory !== undefined) await makeDirectory(directory);
  const seal = (text: string): string =>
    to ? sealToAge(text, to, (length) => new Uint8Array(randomBytes(length))) : text;
  return {
    async reserve(kind, name, labels) {
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
            kept.push({ kind, name, label, sealed: seal(text) });
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
        async withdraw() {
          for (const { file } of kept.splice(0)) if (file !== undefined) await unlink(file).catch(() => undefined);
        },
      };
    },
  };
}

/** The first line that is no comment. */
function recipientIn(text: string): string {
  return text.split('\n').find((line) => line.trim() !== '' && !line.startsWith('#')) ?? '';
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
