// Real file systems of a few megabytes, mounted for a test, if this user may mount at all.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk {
  readonly kind: string;
  /** The mount point. */
  readonly path: string;
  remount(mode: 'ro' | 'rw'): void;
  unmount(): void;
}

/** The kinds that can be mounted here, out of `tmpfs` and `ext4`, each of `megabytes`. */
export function smallDisks(megabytes: number): readonly { readonly kind: string; mount(): SmallDisk }[] {
  return (['tmpfs', 'ext4'] as const).flatMap((kind) => {
    const tried = mountDisk(kind, megabytes);
    tried?.unmount();
    return tried ? [{ kind, mount: () => mountDisk(kind, megabytes) ?? fail(kind) }] : [];
  });
}

function mountDisk(kind: 'tmpfs' | 'ext4', megabytes: number): SmallDisk | undefined {
  const base = mkdtempSync(join(tmpdir(), 'kms-small-disk-'));
  const path = join(base, 'disk');
  mkdirSync(path);
  const unmount = (): void => {
    run('umount', '-l', path);
    rmSync(base, { recursive: true, force: true });
  };
  const mounted = kind === 'tmpfs' ? mountTmpfs(path, megabytes) : mountExt4(base, path, megabytes);
  const remount = (mode: 'ro' | 'rw'): void => void (run('mount', '-o', `remount,${mode}`, path) || fail(kind));
  if (mounted) return { kind, path, remount, unmount };
  rmSync(base, { recursive: true, force: true });
  return undefined;
}

function mountTmpfs(path: string, megabytes: number): boolean {
  return run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', path);
}

function mountExt4(base: string, path: string, megabytes: number): boolean {
  const image = join(base, 'image');
  writeFileSync(image, '');
  truncateSync(image, megabytes * 1024 * 1024);
  // Reserves nothing for root, so that the disk is as full as it reports.
  return run('mkfs.ext4', '-q', '-m', '0', image) && run('mount', '-o', 'loop', image, path);
}

function run(command: string, ...args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

function fail(kind: string): never {
  throw new Error(`${kind} could be mounted before, and now not`);
}
