// Takes the README's two pictures from the running product: the console's overview after a day, and a terminal with the
// README's first commands. Run `node scripts/make-pictures.ts` after `./scripts/build`, with Debian's Chromium, and
// look at the result. The day is simulated: the server's clock starts a day ago, and a signal moves it on by an hour.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';
import { paths } from '../build/paths.ts';
import { stepsOf } from '../test/docs/blocks.ts';

const home = mkdtempSync(join(tmpdir(), 'kms-pictures-'));
const project = join(home, 'kms');
mkdirSync(project);
const pictures = join(paths.root, 'docs', 'pictures');
mkdirSync(pictures, { recursive: true });
const password = 'Correct-Horse-7';
const env = { HOME: home, PATH: `${join(paths.root, 'dist')}:/usr/bin:/bin` };
const hours = 23;
/** Address shown in the pictures. */
const usualAddress = 'http://127.0.0.1:8080';

interface Running {
  readonly url: string;
  readonly rootKey: string;
  nextHour(): void;
  stop(): Promise<void>;
}

const clock = `
  const now = Date.now;
  let ahead = -${hours} * 3_600_000;
  Date.now = () => now() + ahead;
  globalThis.Date = class extends Date {
    constructor(...given) { given.length > 0 ? super(...given) : super(Date.now()); }
  };
  process.on('SIGUSR2', () => { ahead += 3_600_000; });`;

async function start(): Promise<Running> {
  const { apiKey } = JSON.parse(run('kms init --data ./kms-data --json'));
  const main = join(paths.root, 'src', 'main.ts');
  const args = ['--import', `data:text/javascript,${encodeURIComponent(clock)}`, main, 'serve', '--data', './kms-data'];
  const server = spawn(process.execPath, [...args, '--listen', '127.0.0.1:0', '--backup-to', './backups'], { cwd: project, env });
  let url = '';
  for await (const line of createInterface(server.stderr)) {
    url = /listening on (\S+)/.exec(line)?.[1] ?? '';
    if (url) break;
  }
  server.stdout.resume();
  server.stderr.resume();
  const stop = async (): Promise<void> => {
    server.kill();
    await once(server, 'exit');
  };
  return { url, rootKey: apiKey.key, nextHour: () => server.kill('SIGUSR2'), stop };
}

function run(command: string): string {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd: project, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout;
}

/** The README's commands up to the first heading after its start, each with its output. */
function typed(): string[] {
  const readme = readFileSync(join(paths.root, 'README.md'), 'utf8');
  const [, second] = stepsOf(readme, ['js']).filter((step) => step.kind === 'commands');
  if (second?.kind !== 'commands') throw new Error('expected the commands of the README');
  return second.commands.flatMap(({ text }) => {
    const lines = run(text.replaceAll('dist/kms', 'kms')).split('\n');
    return [`$ ${text}`, ...lines.filter((line) => line !== '')];
  });
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function terminal(lines: readonly string[]): string {
  const [lineHeight, charWidth, margin, bar] = [20, 8.43, 16, 32];
  const width = Math.ceil(Math.max(...lines.map((line) => line.length)) * charWidth) + 2 * margin;
  const height = bar + lines.length * lineHeight + margin;
  const rows = lines.map((line, at) => {
    const y = bar + (at + 1) * lineHeight - 6;
    const fill = line.startsWith('$ ') ? '#f0f6fc' : '#9fb0c3';
    return `<text x="${margin}" y="${y}" fill="${fill}" xml:space="preserve">${escaped(line)}</text>`;
  });
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (fill, at) => `<circle cx="${margin + 6 + at * 20}" cy="${bar / 2}" r="6" fill="${fill}"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
      'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">',
    '<title>The first commands of the README in a terminal</title>',
    `<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>`,
    ...dots,
    ...rows,
    '</svg>\n',
  ].join('\n');
}

/** Adds some rings and keys, and a day's work. */
async function fill({ url, rootKey, nextHour }: Running): Promise<void> {
  const ask = async (path: string, body: object, key = rootKey) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const refused = async (path: string, body: object, key: string): Promise<void> => {
    const answer = await ask(path, body, key).catch(() => undefined);
    if (answer) throw new Error(`expected ${path} to be refused`);
  };
  for (const name of ['contracts', 'backups-offsite']) await ask('/ks/keyrings', { name });
  const { id: accountId } = await ask('/auth/accounts', { uid: 'payroll-service', notes: 'the nightly run' });
  const nightly = await ask('/auth/apikey', {
    accountId,
    name: 'nightly run',
    flags: { 'keyring.payroll.encrypt': true, 'keyring.payroll.decrypt': true },
  });
  for (let hour = 0; hour <= hours; hour++) {
    const clockHour = new Date(Date.now() - (hours - hour) * 3_600_000).getHours();
    const isDay = clockHour >= 8 && clockHour < 18;
    for (let time = 0; time < (isDay ? 12 : 2) + ((hour * 5) % 7); time++) {
      const { header } = await ask('/ks/encrypt', { ringname: 'payroll' }, nightly.key);
      if (time % 2 === 0) await ask('/ks/decrypt', { header }, nightly.key);
      await ask('/ks/encrypt', { ringname: isDay ? 'contracts' : 'backups-offsite' });
    }
    if (hour % 8 === 5) await refused('/ks/encrypt', { ringname: 'contracts' }, nightly.key);
    if (hour < hours) nextHour();
  }
  await ask('/system/backups', {});
}

async function overview({ url }: Running): Promise<void> {
  const [setUpUrl = ''] = /http\S+/.exec(run('kms user set-up-link')) ?? [];
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const context = await browser.newContext({ viewport: { width: 1200, height: 760 }, colorScheme: 'light' });
  const page = await context.newPage();
  await page.goto(setUpUrl);
  await page.getByLabel('First name').fill('Ada');
  await page.getByLabel('Last name').fill('Lovelace');
  await page.getByLabel('E-mail address').fill('ada@example.org');
  await page.getByLabel('User name').fill('ada');
  await page.getByLabel('Password', { exact: true }).fill(password);
  const isMade = page.waitForResponse((response) => response.request().method() === 'POST' && response.ok());
  await page.locator('button[type=submit]').click();
  await isMade;
  // The browser keeps the session.
  await page.goto(`${url}/console`);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.getByRole('button', { name: 'Hide this list' }).click();
  await page.getByText('Verified', { exact: false }).first().waitFor();
  await page.waitForLoadState('networkidle');
  await page.screenshot({ path: join(pictures, 'overview.png') });
  await browser.close();
}

if (!existsSync(paths.executable)) throw new Error('expected dist/kms: run ./scripts/build first');
const running = await start();
try {
  const shown = ['$ ./scripts/start', '…', `kms: listening on ${usualAddress}`, '', ...typed()];
  writeFileSync(join(pictures, 'terminal.svg'), terminal(shown));
  await fill(running);
  await overview(running);
} finally {
  await running.stop();
  rmSync(home, { recursive: true });
}
