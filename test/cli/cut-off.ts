// Preloaded into a command: the process kills itself before its n-th change to a file or directory.
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const wanted = Number(process.env.KMS_CUT_OFF_AT);
let count = 0;

function step(): void {
  if (count++ === wanted) process.kill(process.pid, 'SIGKILL');
}

const { open } = promises;
const writing = /[wa+]/;
Object.assign(promises, {
  async open(path: string, flags?: string | number, mode?: number) {
    if (typeof flags === 'string' && writing.test(flags)) step();
    const handle = await open(path, flags, mode);
    const { writeFile, sync } = handle;
    handle.writeFile = (...args: Parameters<typeof writeFile>) => {
      step();
      return writeFile.apply(handle, args);
    };
    handle.sync = () => {
      step();
      return sync.apply(handle);
    };
    return handle;
  },
});
for (const name of ['rename', 'link', 'symlink', 'unlink', 'writeFile'] as const) {
  // Cast: all arguments are passed on, whatever the types.
  const original = promises[name] as (...args: unknown[]) => Promise<unknown>;
  Object.assign(promises, {
    [name](...args: unknown[]) {
      step();
      return original(...args);
    },
  });
}
syncBuiltinESMExports();
