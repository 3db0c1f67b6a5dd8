// Installing clients from several processes at once, with fake Go and Python programs that are slow and leave partial
// output when they are cut off.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

/** Logs its begin and end; no two may overlap. */
const slow = (work: string): string => `#!/bin/sh
echo "begin $$" >> "$LOG"
${work}
echo "end $$" >> "$LOG"
`;

const pretended = {
  go: slow(
    'mkdir -p "$GOBIN"; printf "#!/bin/sh\n" > "$GOBIN/age"; sleep 1; echo "echo whole" >> "$GOBIN/age"; chmod +x "$GOBIN/age"',
  ),
  python3: slow(`mkdir -p "$3/bin"
cat > "$3/bin/pip" <<"END"
${slow('sleep 1; echo whole > "$(dirname "$0")/hvac"')}END
chmod +x "$3/bin/pip"`),
};

test('several processes that install the same for the first time do so once, and whoever was cut off left nothing', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'kms-install-'));
  for (const [name, text] of Object.entries(pretended)) {
    await writeFile(join(dir, name), text);
    await chmod(join(dir, name), 0o755);
  }
  const log = join(dir, 'log');
  const place = join(dir, 'place');
  const env = {
    ...process.env,
    KMS_INTEROP: place,
    KMS_GO: join(dir, 'go'),
    PATH: `${dir}:${process.env.PATH}`,
    LOG: log,
  };
  const install = (call: string): ChildProcess => {
    const text = `import * as all from ${JSON.stringify(new URL('install.ts', import.meta.url).href)};
      process.stdout.write(await all.${call});`;
    const stdio = ['ignore', 'pipe', 'inherit'] as const;
    return spawn(process.execPath, ['--input-type=module', '-e', text], { env, stdio: [...stdio], detached: true });
  };
  const made = async (child: ChildProcess): Promise<string> => {
    let said = '';
    child.stdout?.on('data', (piece) => {
      said += piece;
    });
    const [code] = await once(child, 'close');
    assert.equal(code, 0);
    return said;
  };
  const ran = async (): Promise<string[]> => (await readFile(log, 'utf8').catch(() => '')).split('\n').slice(0, -1);
  const goProgram = "goProgram('example.org/cmd/age', 'v1')";
  const python = "pythonPrograms('hvac==1')";
  try {
    // Killed halfway, with all its processes.
    const cut = install(goProgram);
    for (let n = 0; n < 200 && !existsSync(join(place, 'go/age@v1.new/age')); n++) await delay(50);
    process.kill(-(cut.pid ?? 0), 'SIGKILL');
    await once(cut, 'close');
    assert.ok(!existsSync(join(place, 'go/age@v1')));
    await rm(log);

    const paths = await Promise.all([goProgram, goProgram, python, python].map((call) => made(install(call))));
    const [program = '', , bin = ''] = paths;
    assert.deepEqual(paths, [program, program, bin, bin]);
    assert.equal(execFileSync(program, { encoding: 'utf8' }), 'whole\n');
    assert.equal(await readFile(join(bin, 'hvac'), 'utf8'), 'whole\n');
    const lines = await ran();
    // Go once, Python once, and pip once, which a fresh environment contains: none of them overlaps another.
    assert.equal(lines.length, 6, lines.join());
    for (let at = 0; at < lines.length; at += 2) assert.equal(lines[at]?.replace('begin', 'end'), lines[at + 1]);
    assert.equal(await made(install(goProgram)), program);
    assert.equal((await ran()).length, 6, 'nothing is installed again');
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
