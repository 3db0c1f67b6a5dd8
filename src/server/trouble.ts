// What the operating system refuses, in one clear line: which file or address, why, and what to do.
import { KmsError } from '../errors.ts';

/** The error code of the system, such as `ENOENT`; undefined for anything else. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** `error` as a KmsError about `name`; what is one already, or is no refusal of the file system, comes back as it is. */
export function fileTrouble(error: unknown, name: string): unknown {
  if (error instanceof KmsError) return error;
  switch (systemCode(error)) {
    case 'EACCES':
    case 'EPERM':
      return new KmsError('refused', `${name}: permission denied`, {
        hint: 'run as the user that owns it, or change its owner and mode',
        cause: error,
      });
    case 'EROFS':
      return new KmsError('refused', `${name}: the file system is read-only`, {
        hint: 'mount it writable or choose another place',
        cause: error,
      });
    case 'ENOSPC':
    case 'EDQUOT':
      return new KmsError('refused', `${name}: no space left`, {
        hint: 'free some space and try again',
        cause: error,
      });
    case 'ENOTDIR':
      return new KmsError('refused', `${name}: expected a directory, found a file`, {
        hint: 'choose another place',
        cause: error,
      });
    case 'EISDIR':
      return new KmsError('refused', `${name}: expected a file, found a directory`, {
        hint: 'choose another file',
        cause: error,
      });
    case 'ENOENT':
      return new KmsError('refused', `${name}: no such file or directory`, {
        hint: 'check the path',
        cause: error,
      });
    case 'ENAMETOOLONG':
      return new KmsError('refused', `${name}: the path is too long`, { hint: 'choose a shorter path', cause: error });
    case 'ELOOP':
      return new KmsError('refused', `${name}: too many symbolic links`, { hint: 'check the path', cause: error });
    case 'EMFILE':
    case 'ENFILE':
      return new KmsError('refused', `${name}: too many open files`, {
        hint: 'raise the limit of open files (ulimit -n)',
        cause: error,
      });
    case 'EIO':
      return new KmsError('refused', `${name}: the disk reports an error`, {
        hint: 'check the disk',
        cause: error,
      });
    default:
      return error;
  }
}
