// The session of a user for what an API key cannot do: opened at the terminal with user name, password and a code,
// used for one command, and ended.
import { type Client, createClient } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { isJsonObject } from '../model/json.ts';
import type { CliOf } from './command.ts';
import { type Connection, withClient } from './connect.ts';
import type { userLogin } from './grammar/approval.ts';
import { write } from './io.ts';
import { askLine, readLines, readSecret, readSecretFile } from './secrets.ts';

type LoginCli = CliOf<typeof userLogin>;

/** Access tokens of users; see crypto/secrets.ts. */
const accessToken = /^Bearer kmsat_/;

interface UserSession {
  readonly client: Client;
  readonly connection: Connection;
  /** A code of the app, once more than for the login. */
  code(): Promise<string>;
}

/**
 * Runs `use` as a user: the one whose access token is the credential, or one who logs in now. Throws `refused` where a
 * passkey alone would do.
 */
export async function asUser<T>(cli: LoginCli, page: string, use: (session: UserSession) => Promise<T>): Promise<T> {
  return withClient(cli, async (client, connection) => {
    const answers = new Answers(cli);
    const code = (): Promise<string> => answers.secret('code from your app');
    if (accessToken.test(connection.headers.authorization ?? '')) return use({ client, connection, code });
    const token = await logIn(cli, connection, answers, consolePage(connection, page));
    const session = clientOf(connection, token);
    try {
      return await use({ client: session, connection, code });
    } finally {
      await session.logout().catch(() => undefined);
    }
  });
}

/** Advice for who has no code to type: a passkey works in a browser only. */
export function consolePage({ way, baseUrl }: Pick<Connection, 'way' | 'baseUrl'>, page: string): string {
  return way === 'network' ? `in the console, ${baseUrl}${page}` : `in the console, at ${page} of its address`;
}

function clientOf({ baseUrl, fetch, tenantHeaders: headers }: Connection, apiKey?: string): Client {
  return createClient({ baseUrl, fetch, headers, retries: 0, timeout: Number.POSITIVE_INFINITY, apiKey });
}

async function logIn(cli: LoginCli, connection: Connection, answers: Answers, there: string): Promise<string> {
  const client = clientOf(connection);
  const username = cli.get('--user') ?? (await answers.plain('user name'));
  const file = cli.get('--password-file');
  const password = file === undefined ? await answers.secret('password') : await readSecretFile(file, 'the password');
  try {
    return (await client.login({ username, password })).accessToken;
  } catch (error) {
    const kinds = secondFactorsIn(error);
    if (kinds === undefined) throw error;
    if (!kinds.includes('totp')) throw noCode(kinds, there);
    return (await client.login({ username, password, code: await answers.secret('code from your app') })).accessToken;
  }
}

/** Kinds of second factors that an answer asks for; undefined if it does not. */
function secondFactorsIn(error: unknown): readonly unknown[] | undefined {
  const { body } = error instanceof KmsError ? error : {};
  return isJsonObject(body) && Array.isArray(body.secondFactor) ? body.secondFactor : undefined;
}

/** The error of who has no app that shows codes. */
export function noCode(kinds: readonly unknown[], there: string): KmsError {
  if (!kinds.includes('passkey')) {
    return new KmsError('refused', 'you have no second factor', { hint: 'add one in the console, under Your account' });
  }
  return new KmsError('refused', 'passkeys do not work in a terminal, and you have no app for codes', {
    hint: `do it ${there}`,
  });
}

/** Answers of a person at the terminal, or else the lines of stdin, in the order in which they are asked for. */
class Answers {
  readonly #cli: LoginCli;
  #lines: string[] | undefined;

  constructor(cli: LoginCli) {
    this.#cli = cli;
  }

  async plain(what: string): Promise<string> {
    const { stdin, stderr, signal } = this.#cli.io;
    if (!this.#isTerminal) throw this.#cli.wrong('--user is missing, and there is no terminal to ask at');
    await write(stderr, `${what}: `);
    return (await askLine({ input: stdin, output: stderr, terminal: false }, '', signal)).trim();
  }

  /** Never echoed. */
  async secret(what: string): Promise<string> {
    const typed = this.#isTerminal ? await readSecret(this.#cli, what) : await this.#nextLine();
    if (typed) return typed;
    throw this.#cli.wrong(
      `expected the ${what} ${this.#isTerminal ? 'at the terminal' : 'as a line of stdin'}, got nothing`,
    );
  }

  async #nextLine(): Promise<string | undefined> {
    this.#lines ??= [...(await readLines(this.#cli, 'password and code'))];
    return this.#lines.shift();
  }

  get #isTerminal(): boolean {
    const { stdin, stderr } = this.#cli.io;
    return stdin.isTTY === true && stderr.isTTY === true;
  }
}
