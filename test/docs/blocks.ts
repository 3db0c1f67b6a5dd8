// Samples in a page: blocks of commands at a prompt with their output, and files. A comment before a block adds facts
// that the page does not show: why it is not run, that the server is stopped first, that an appliance exists, the
// file's name, a signed token and its issuer's keys in files, a user's app and its codes, other programs that the
// commands need.

export interface Command {
  readonly line: number;
  /** The command as typed, with all its lines. */
  readonly text: string;
  /** Output shown on the page; if empty, nothing is compared. */
  readonly shown: readonly string[];
  /** Expected exit code, from a comment `# exit code 1` after the command; default 0. */
  readonly exitCode: number;
}

export type Step =
  | {
      readonly kind: 'commands';
      readonly line: number;
      readonly commands: readonly Command[];
      /** Programs of others, without which the commands are not typed. */
      readonly needs?: readonly string[];
    }
  | { readonly kind: 'file'; readonly line: number; readonly name: string; readonly text: string }
  | { readonly kind: 'token'; readonly name: string; readonly claims: Readonly<Record<string, unknown>> }
  /** A user's app that shows codes: it is set up with the password in the file `NAME.password`. */
  | { readonly kind: 'app'; readonly user: string }
  /** A code of that app, in the file `NAME.code`. */
  | { readonly kind: 'code'; readonly user: string }
  | { readonly kind: 'stop-server' }
  | { readonly kind: 'fresh' }
  | { readonly kind: 'appliance' }
  | { readonly kind: 'not-run'; readonly line: number; readonly reason: string };

/** Languages of blocks that show no actions. */
const shownOnly = ['json', 'yaml', 'ini', 'text', 'http', 'hcl'];

/**
 * The steps of a page, in order. Throws for a block that is neither run nor marked as not run. Blocks in the languages
 * `elsewhere` are left to another test.
 */
export function stepsOf(page: string, elsewhere: readonly string[] = []): Step[] {
  const steps: Step[] = [];
  const lines = page.split('\n');
  let notRun: string | undefined;
  let file: string | undefined;
  let needs: readonly string[] | undefined;
  for (let at = 0; at < lines.length; at++) {
    const directive = /^<!-- (.*) -->$/.exec(lines[at] ?? '')?.[1];
    if (directive !== undefined) {
      const [, reason] = /^not run: (.+)$/.exec(directive) ?? [];
      const [, name] = /^file: (.+)$/.exec(directive) ?? [];
      const [, others] = /^with: (.+)$/.exec(directive) ?? [];
      const [, token, claims = ''] = /^token: (\S+) (\{.+\})$/.exec(directive) ?? [];
      const [, user] = /^an app of the user (\S+)$/.exec(directive) ?? [];
      const [, coded] = /^a code of (\S+)$/.exec(directive) ?? [];
      if (reason !== undefined) notRun = reason;
      else if (user !== undefined) steps.push({ kind: 'app', user });
      else if (coded !== undefined) steps.push({ kind: 'code', user: coded });
      else if (name !== undefined) file = name;
      else if (others !== undefined) needs = others.split(' ');
      else if (token !== undefined) steps.push({ kind: 'token', name: token, claims: JSON.parse(claims) });
      else if (directive === 'the server is stopped') steps.push({ kind: 'stop-server' });
      else if (directive === 'another directory') steps.push({ kind: 'fresh' });
      else if (directive === 'with an appliance') steps.push({ kind: 'appliance' });
      else throw new Error(`line ${at + 1}: no such directive: ${directive}`);
      continue;
    }
    const language = /^```(\w*)$/.exec(lines[at] ?? '')?.[1];
    if (language === undefined) continue;
    const line = at + 1;
    const end = lines.indexOf('```', at + 1);
    if (end < 0) throw new Error(`line ${line}: a block without an end`);
    const content = lines.slice(at + 1, end);
    at = end;
    if (notRun !== undefined) steps.push({ kind: 'not-run', line, reason: notRun });
    else if (file !== undefined) steps.push({ kind: 'file', line, name: file, text: `${content.join('\n')}\n` });
    else if (language === 'console')
      steps.push({ kind: 'commands', line, commands: commandsOf(content, line + 1), ...(needs && { needs }) });
    else if (![...shownOnly, ...elsewhere].includes(language))
      throw new Error(`line ${line}: a block of ${language || 'no language'} is not run`);
    notRun = undefined;
    file = undefined;
    needs = undefined;
  }
  return steps;
}

function commandsOf(content: readonly string[], first: number): Command[] {
  const commands: Command[] = [];
  for (let at = 0; at < content.length; ) {
    const line = first + at;
    const typed = content[at++] ?? '';
    if (!typed.startsWith('$ ')) throw new Error(`line ${line}: expected a command, got ${typed}`);
    let text = typed.slice(2);
    while (text.endsWith('\\') && at < content.length) text += `\n${content[at++] ?? ''}`;
    const shown: string[] = [];
    while (at < content.length && !content[at]?.startsWith('$ ')) shown.push(content[at++] ?? '');
    commands.push({ line, text, shown, exitCode: Number(/# exit code (\d+)$/.exec(text)?.[1] ?? 0) });
  }
  return commands;
}

/**
 * Whether the output matches what is shown: `…` stands for any text within a line, and on a line of its own for any
 * number of lines. Column widths are ignored.
 */
export function isAsShown(output: string, shown: readonly string[], { begins = false } = {}): boolean {
  const lines = output.split('\n').map((line) => line.trimEnd());
  while (lines.at(-1) === '') lines.pop();
  const pattern = shown.map((line) =>
    line.trim() === '…' ? '(?:[^\\n]*\\n)*' : `${line.trimEnd().split('…').map(literally).join('[^\\n]*')}\\n`,
  );
  return new RegExp(`^${pattern.join('')}${begins ? '' : '$'}`).test(lines.map((line) => `${line}\n`).join(''));
}

function literally(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&').replace(/ {2,}/g, ' +');
}
