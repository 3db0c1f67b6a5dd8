// Limits of the process (ulimit, systemd's Limit…=) that would end it or refuse its writes while it serves. The lowest
// end the runtime before any of this program runs; docs/running.md lists them.
import { readFileSync } from 'node:fs';
import { KmsError } from '../errors.ts';

interface ProcessLimits {
  /** Limit of open files. */
  readonly files: number;
  /** Limits of file size and address space, in bytes. */
  readonly fileSize: number;
  readonly addressSpace: number;
}

/** Files that an appliance with one tenant has open, with some clients. */
const leastFiles = 64;
/** Each connection is an open file. */
const fewFiles = 1024;
/** Four thousand million bytes: the runtime reserves more than it uses. */
const smallAddressSpace = 4e9;

const labels: Readonly<Record<keyof ProcessLimits, string>> = {
  files: 'Max open files',
  fileSize: 'Max file size',
  addressSpace: 'Max address space',
};

/** `text` is the content of /proc/self/limits. An unlimited or missing value is Infinity. */
export function limitsIn(text: string): ProcessLimits {
  const of = (name: keyof ProcessLimits): number => {
    const [, soft] = new RegExp(`^${labels[name]}\\s+(\\d+|unlimited)\\s`, 'm').exec(text) ?? [];
    return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
  };
  return { files: of('files'), fileSize: of('fileSize'), addressSpace: of('addressSpace') };
}

/** Warnings about the limits at a server's start. Throws `refused` if it could not serve. */
export function judgeLimits({ files, fileSize, addressSpace }: ProcessLimits): readonly string[] {
  if (files < leastFiles) {
    throw new KmsError('refused', `at most ${files} files may be open, and a server needs ${leastFiles}`, {
      hint: 'raise the limit of open files (ulimit -n, LimitNOFILE= of systemd)',
    });
  }
  const warnings: string[] = [];
  if (files < fewFiles) {
    const advice = 'each connection is one: raise the limit (ulimit -n, LimitNOFILE=) to serve many clients';
    warnings.push(`at most ${files} files may be open, and ${advice}`);
  }
  if (fileSize < Number.POSITIVE_INFINITY) {
    const advice = 'what needs a longer one, as a backup may, is refused (ulimit -f, LimitFSIZE=)';
    warnings.push(`no file may grow beyond ${fileSize} bytes: ${advice}`);
  }
  if (addressSpace < smallAddressSpace) {
    const advice = 'a process that needs more ends without a word (ulimit -v, LimitAS=)';
    warnings.push(`the address space is limited to ${addressSpace} bytes: ${advice}`);
  }
  return warnings;
}

/** Connections per listener, unless the limit of open files is lower. */
const usualConnections = 8192;
/** Open files kept from the network: for the store, backups, the local socket, libraries loaded on demand. */
const reserve = { least: 48, most: 512 };

/** Connections that each of the network's `listeners` may have. */
export function connectionsFor({ files }: Pick<ProcessLimits, 'files'>, listeners: number): number {
  const kept = Math.max(reserve.least, Math.min(reserve.most, Math.floor(files / 4)));
  return Math.min(usualConnections, Math.floor((files - kept) / listeners));
}

/** All Infinity if the system does not tell. */
export function processLimits(): ProcessLimits {
  let text = '';
  try {
    text = readFileSync('/proc/self/limits', 'latin1');
  } catch {
    // Not Linux, or no /proc.
  }
  return limitsIn(text);
}
