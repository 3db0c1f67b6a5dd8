// The machine: room on the disk, and the ways in which memory gets onto one.
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { type DiskSpace, freePercent, inUnits } from '../space/disk.ts';
import type { Find } from './finding.ts';

export interface Host {
  /** The file's text; undefined where there is none. */
  read(path: string): Promise<string | undefined>;
  space(path: string): Promise<DiskSpace>;
}

export const readText: Host['read'] = (path) => readFile(path, 'utf8').catch(() => undefined);

export async function examineSpace(host: Host, data: string, find: Find): Promise<void> {
  const space = await host.space(data).catch(() => undefined);
  if (!space) return;
  const percent = freePercent(space);
  const severity = percent < 5 ? 'error' : percent < 10 ? 'warning' : percent < 20 ? 'advice' : undefined;
  if (severity) {
    const message = `${percent} percent are free, ${inUnits(space.free)} of ${inUnits(space.total)}`;
    find(severity, 'disk-low', data, message, 'free space on its file system, or give it more');
  }
  if (space.freeFiles !== undefined && space.freeFiles < 1000) {
    const message = `${space.freeFiles} more files can be made on its file system`;
    find('error', 'files-low', data, message, 'remove files that nobody needs');
  }
}

/** `pid` is that of the running server; without one the limits of this process stand for those of the next. */
export async function examineMemory(host: Host, pid: number | undefined, find: Find): Promise<void> {
  await examineSwap(host, find);
  const who = pid === undefined ? 'self' : String(pid);
  const limits = await host.read(`/proc/${who}/limits`);
  const [, soft] = /^Max core file size +(\S+)/m.exec(limits ?? '') ?? [];
  const filter = await host.read(`/proc/${who}/coredump_filter`);
  // A server takes memory out of its core dumps by itself; where that worked, what is left of them is harmless.
  const harmless = pid !== undefined && filter !== undefined && Number.parseInt(filter, 16) === 0;
  if (soft !== undefined && soft !== '0' && !harmless) {
    const advice = 'start the server with core dumps off: `ulimit -c 0`, or LimitCORE=0 in its unit';
    find('advice', 'core-dumps', `/proc/${who}/limits`, 'a crash may write a core dump', advice);
  }
}

async function examineSwap(host: Host, find: Find): Promise<void> {
  const lines = ((await host.read('/proc/swaps')) ?? '').split('\n').slice(1);
  for (const line of lines) {
    const [device] = line.split(/\s+/);
    if (!device || (await isKeptSecret(host, device))) continue;
    const message = 'memory, and with it keys, may be written to it in clear';
    const advice =
      'encrypt it, or turn it off (swapoff); Node cannot lock its memory: MemorySwapMax=0 in the unit keeps the server out of it';
    find('advice', 'swap', device, message, advice);
  }
}

/** In memory, or on a device that encrypts. */
async function isKeptSecret(host: Host, device: string): Promise<boolean> {
  const name = basename(device);
  if (name.startsWith('zram')) return true;
  return (await host.read(`/sys/block/${name}/dm/uuid`))?.startsWith('CRYPT-') ?? false;
}
