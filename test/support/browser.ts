// Debian's Chromium for browser tests: one for each test file, and a context for each visit, which notes everything
// that goes wrong in it.
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { after, afterEach, beforeEach } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const executable = process.env.KMS_CHROMIUM || '/usr/bin/chromium';
if (!existsSync(executable)) {
  throw new Error(
    `tests of pages need Chromium, and ${executable} is missing: run scripts/install-browser as root, or name one in KMS_CHROMIUM`,
  );
}
const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const screenshots = fileURLToPath(new URL('../../dist/screenshots/', import.meta.url));

export interface Look {
  readonly scheme?: 'light' | 'dark';
  /** Width of the window, in CSS pixels. */
  readonly width?: number;
  /** Time zone, such as `Europe/Berlin`; default: the machine's own. */
  readonly zone?: string;
}

export interface Visit {
  readonly page: Page;
  /** Script errors and violations of the content security policy. */
  readonly troubles: readonly string[];
}

let starting: Promise<Browser> | undefined;
// A failed start has already been reported by the tests.
after(async () => (await starting?.catch(() => undefined))?.close());
// An open page keeps sending requests, which would appear in the activity log of later tests.
let ofThisTest: BrowserContext[] = [];
beforeEach(() => {
  ofThisTest = [];
});
afterEach(async () => {
  await Promise.all(
    ofThisTest.map(async (context) => {
      // A route that a test handles may be under way, and would fail with the page.
      await Promise.all(context.pages().map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })));
      await context.close();
    }),
  );
});

/** Opens a window at `url`. It is closed after the test, or after all tests of the file if opened outside of one. */
export async function visit(url: string, { scheme = 'light', width = 1000, zone }: Look = {}): Promise<Visit> {
  starting ??= start();
  const browser = await starting;
  const viewport = { width, height: 800 };
  const context = await browser.newContext({ colorScheme: scheme, viewport, ...(zone && { timezoneId: zone }) });
  ofThisTest.push(context);
  const page = await context.newPage();
  // Long enough for a machine with much else to do: what is waited for comes, or never.
  page.setDefaultTimeout(120_000);
  const troubles: string[] = [];
  page.on('pageerror', (error) => troubles.push(error.message));
  page.on('console', (message) => {
    // A refused request is no trouble of the page; some tests want just that.
    const isRefusal = message.text().startsWith('Failed to load resource');
    if (['error', 'warning'].includes(message.type()) && !isRefusal) troubles.push(message.text());
  });
  await page.goto(url);
  return { page, troubles };
}

function start(): Promise<Browser> {
  return chromium.launch({
    executablePath: executable,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** Status and JSON body. */
export type Answer = readonly [status: number, body: Record<string, unknown>];

/**
 * Calls `seen` with the answers to requests to `path`, intercepted on their way: the browser may have discarded a body
 * by the time it is asked for.
 */
export async function watchAnswers(page: Page, path: string, seen: (answer: Answer) => void): Promise<void> {
  await page.route(`**${path}`, async (route) => {
    const response = await route.fetch();
    seen([response.status(), await response.json()]);
    await route.fulfill({ response });
  });
}

/** Violations that axe finds on the page, one line each. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(await axe);
  return page.evaluate(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: axe puts itself there
    const { violations } = await (globalThis as any).axe.run();
    // biome-ignore lint/suspicious/noExplicitAny: as above
    return violations.map((each: any) => `${each.id}: ${each.nodes.map((node: any) => node.html).join(' ')}`);
  });
}

/** A screenshot of the whole page, or of the window, kept in dist/screenshots for people to look at. */
export async function screenshot(page: Page, name: string, { fullPage = true } = {}): Promise<void> {
  await mkdir(screenshots, { recursive: true });
  await page.screenshot({ path: `${screenshots}${name}.png`, fullPage });
}
