// One run of an upgrade with servers simulated by files: the running version, whether it holds clients off, and its
// acknowledged writes. At the requested point it stops for good, as a killed process would; it runs in a thread, which
// is then terminated.
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { readJournal, steps } from '../../src/upgrade/journal.ts';
import { ownFormats, ownPlatform } from '../../src/upgrade/release.ts';
import { resume, type UpgradePorts, upgrade } from '../../src/upgrade/upgrade.ts';

export interface RunInput {
  /** Contains `kms` and `data`. */
  readonly dir: string;
  /** Behaviour of the new version: serves, ends at once, answers wrongly, or spoils the data and hangs. */
  readonly behaves: 'well' | 'ends' | 'lies' | 'spoils';
  /** Finishes an interrupted upgrade instead of beginning one. */
  readonly resumes: boolean;
  /** The number of the point at which it stops, from 1 on; 0 for none. */
  readonly stopsAt: number;
}

export interface RunReport {
  readonly points: readonly string[];
  readonly outcome?: Awaited<ReturnType<typeof resume>> | 'nothing to do';
  readonly error?: string;
}

interface Model {
  readonly running: 'old' | 'new' | undefined;
  readonly held: boolean;
  readonly acknowledged: number;
}

const release = {
  executable: Buffer.from('the new executable'),
  manifest: { name: 'kms', version: '9.9.9', platform: ownPlatform, formats: ownFormats, files: [] },
} as const;

/** Where it stops, the rest waits for ever. */
export function upgradeRun(input: RunInput): Promise<RunReport> {
  return new Promise((stopped, failed) => {
    runOf(input, stopped).then(stopped, failed);
  });
}

async function runOf(
  { dir, behaves, resumes, stopsAt }: RunInput,
  stopped: (report: RunReport) => void,
): Promise<RunReport> {
  const data = join(dir, 'data');
  const executable = join(dir, 'kms');
  const modelFile = join(dir, 'model.json');
  const read = (): Model => JSON.parse(readFileSync(modelFile, 'utf8'));
  const change = (more: Partial<Model>): void => writeFileSync(modelFile, JSON.stringify({ ...read(), ...more }));

  const holds = async (): Promise<boolean> => {
    const journal = await readJournal(data);
    return journal !== undefined && steps[journal.step].holds;
  };

  /** A client sends a request at every step; the running version answers it, unless it holds clients off. */
  async function client(): Promise<void> {
    const { running, held, acknowledged } = read();
    if (!running) return;
    if (held && (await holds())) return;
    appendFileSync(join(data, 'system', 'log'), `acknowledged ${acknowledged + 1}\n`);
    change({ held: false, acknowledged: acknowledged + 1 });
  }

  const points: string[] = [];

  const ports: UpgradePorts = {
    backUp: async (name) => writeFileSync(join(data, name), 'a backup'),
    probe: async () => [{ tenant: 'default', header: 'header', answer: { key: 1 } }],
    stop: async () => change({ running: undefined }),
    async start() {
      const isNew = readFileSync(executable, 'utf8') === 'the new executable';
      if (isNew && behaves === 'ends') throw new Error('it ended with 1');
      change({ running: isNew ? 'new' : 'old', held: await holds() });
      if (!isNew) return;
      appendFileSync(join(data, 'system', 'log'), 'migrated\n');
      if (behaves === 'spoils') {
        rmSync(join(data, 'tenants'), { recursive: true });
        writeFileSync(join(data, 'kms.seal'), 'spoilt');
        writeFileSync(join(data, 'more'), 'new');
      }
    },
    async check(journal, version) {
      const { running } = read();
      if (!running) throw new Error('nothing serves');
      if ((running === 'new') !== (version === journal.to.version)) throw new Error('another version serves');
      if (running === 'new' && behaves !== 'well') throw new Error(behaves === 'lies' ? 'wrong' : 'the time is over');
      if (journal.probes.length !== 1) throw new Error('nothing was encrypted');
      if (!existsSync(join(data, 'tenants', 'one'))) throw new Error('the data are not there');
    },
    release: async () => client(),
    say: async () => {},
    now: () => 1_700_000_000_000,
    async reached(point) {
      await client();
      points.push(point);
      if (points.length !== stopsAt) return;
      stopped({ points });
      await new Promise(() => {});
    },
  };

  try {
    const journal = resumes ? await readJournal(data) : undefined;
    if (resumes && !journal) return { points, outcome: 'nothing to do' };
    if (journal) return { points, outcome: await resume(journal, data, ports) };
    const input = {
      data,
      executable,
      version: '1.0.0',
      release,
      service: { kind: 'none' },
      allowDowngrade: false,
    } as const;
    return { points, outcome: await upgrade(input, ports) };
  } catch (error) {
    return { points, error: String(error) };
  }
}

// Cast: the test passes it.
if (parentPort) parentPort.postMessage(await upgradeRun(workerData as RunInput));
