// Debian's Chromium for tests of pages: one for each test file, and for each visit a context of its own that notes all
// that went wrong in it.
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
  /** Of the window, in CSS pixels. */
  readonly width?: number;
  /** Such as `Europe/Berlin`; the machine's own where there is none. */
  readonly zone?: string;
}

export interface Visit {
  readonly page: Page;
  /** Errors of scripts and refusals of the content security policy. */
  readonly troubles: readonly string[];
}

let starting: Promise<Browser> | undefined;
// Where the start failed, the tests have said so.
after(async () => (await starting?.catch(() => undefined))?.close());
// A page that is left open goes on asking, and what it asks is in the activity log of the tests that follow.
let ofThisTest: BrowserContext[] = [];
beforeEach(() => {
  ofThisTest = [];
});
afterEach(async () => {
  await Promise.all(
    ofThisTest.map(async (context) => {
      // What a test answers in the appliance's place may be under way, and fails with the page.
      await Promise.all(context.pages().map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })));
      await context.close();
    }),
  );
});

/** A new window at `url`, closed after the test that opens it; one that none opens, after the tests of the file. */
export async function visit(url: string, { scheme = 'light', width = 1000, zone }: Look = {}): Promise<Visit> {
  starting ??= start();
  const browser = await starting;
  const viewport = { width, height: 800 };
  const context = await browser.newContext({ colorScheme: scheme, viewport, ...(zone && { timezoneId: zone }) });
  ofThisTest.push(context);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const troubles: string[] = [];
  page.on('pageerror', (error) => troubles.push(error.message));
  page.on('console', (message) => {
    // A request that was refused is no trouble of the page; there are tests that want just that.
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

/** Status and body, as JSON. */
export type Answer = readonly [status: number, body: Record<string, unknown>];

/**
 * Calls `seen` with the answers to requests to `path`, read on their way: the browser may have let go of a body by the
 * time that somebody asks it for it.
 */
export async function watchAnswers(page: Page, path: string, seen: (answer: Answer) => void): Promise<void> {
  await page.route(`**${path}`, async (route) => {
    const response = await route.fetch();
    seen([response.status(), await response.json()]);
    await route.fulfill({ response });
  });
}

/** What axe finds wrong with the page, one line each. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(await axe);
  return page.evaluate(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: axe puts itself there
    const { violations } = await (globalThis as any).axe.run();
    // biome-ignore lint/suspicious/noExplicitAny: as above
    return violations.map((each: any) => `${each.id}: ${each.nodes.map((node: any) => node.html).join(' ')}`);
  });
}

/** Of the whole page, or of the window. Kept in dist/screenshots, for people to look at. */
export async function screenshot(page: Page, name: string, { fullPage = true } = {}): Promise<void> {
  await mkdir(screenshots, { recursive: true });
  await page.screenshot({ path: `${screenshots}${name}.png`, fullPage });
}
