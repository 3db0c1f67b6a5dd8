// A process that does something harmful again and again, as fast as possible.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Repeats `step` in `dir`, in which `fs` and `tried` may be used. Resolves once it has been done for the first time;
 * the tests would pass without any attack otherwise.
 */
export async function attacker(dir: string, step: string): Promise<ChildProcess> {
  const code = `const fs = require('node:fs');
    const tried = (work) => { try { work(); } catch {} };
    process.chdir(${JSON.stringify(dir)});
    const step = () => {${step}};
    step();
    fs.writeSync(1, 'begun');
    for (;;) step();`;
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}
