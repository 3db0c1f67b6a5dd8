// Snippets are short programs that use a keyring of this appliance, for the command line, curl, the client library and
// Python, with the real address and names in them. Credentials come from a file or from the environment, so that no
// snippet has a secret in it.

import type { Flags } from '../../model/flags.ts';
import { shellQuoted } from '../../model/shell.ts';

export interface Snippet {
  readonly language: 'kms' | 'curl' | 'TypeScript' | 'Python' | 'hvac';
  readonly code: string;
}

export interface SnippetPlace {
  /** The appliance's address, without a trailing slash. */
  readonly baseUrl: string;
  /** File with the API key; without one it is in the variable `KMS_API_KEY`. */
  readonly keyFile?: string;
}

/** The operations of a program on a keyring. */
type KeyringUse = 'encrypt' | 'decrypt' | 'both';

/**
 * Programs for a keyring. Those that decrypt read its private key from a file named like it; those that only encrypt
 * seal to its public key.
 */
export function keyringSnippets(place: SnippetPlace, ring: string, use: KeyringUse): readonly Snippet[] {
  if (use === 'encrypt') return sealingSnippets(place, ring);
  const encrypts = use === 'both';
  const key = `${ring}.key`;
  const kms = lines(
    environment(place),
    encrypts && `kms encrypt --ring ${ring} --private-key ${key} -o report.pdf.kms report.pdf`,
    `kms decrypt --private-key ${key} -o ${encrypts ? 'copy.pdf' : 'report.pdf'} report.pdf.kms`,
  );
  const typescript = lines(
    "import { readFile, writeFile } from 'node:fs/promises';",
    `import { createClient, decryptBytes${encrypts ? ', encryptBytes' : ''} } from '@kms-appliance/client';`,
    '',
    client(place),
    `const privateKey = await readFile(${text(key)}, 'utf8');`,
    '',
    encrypts &&
      `const made = await encryptBytes(await readFile('report.pdf'), { client, ring: ${text(ring)}, privateKey });`,
    encrypts && "await writeFile('report.pdf.kms', made.bytes);",
    "const read = await decryptBytes(await readFile('report.pdf.kms'), { client, privateKey });",
    `await writeFile('${encrypts ? 'copy.pdf' : 'report.pdf'}', read.bytes);`,
  );
  const files: Snippet[] = [
    { language: 'kms', code: kms },
    { language: 'TypeScript', code: typescript },
  ];
  if (!encrypts) return files;
  const curl = lines(
    "# A key wrapped to the keyring's public key, and the header to put in front of the file",
    `${post(place, `'${JSON.stringify({ ringname: ring })}'`, '/ks/encrypt')} > encrypt.json`,
    '# The same key again, by the header',
    `header=$(grep -o '"header":"[^"]*"' encrypt.json | cut -d '"' -f 4)`,
    post(place, '"{\\"header\\": \\"$header\\"}"', '/ks/decrypt'),
  );
  const python = lines(
    ask(place, []),
    '',
    "# The key is wrapped to the keyring's public key; the header goes in front of the file.",
    `made = ask("/ks/encrypt", {"ringname": ${JSON.stringify(ring)}})`,
    'print(made["key"]["keyData"], made["header"])',
    '# The header gets the same key again.',
    'again = ask("/ks/decrypt", {"header": made["header"]})',
    'print(again["key"]["id"] == made["key"]["id"])',
  );
  const [kmsTab, ...rest] = files;
  return [...(kmsTab ? [kmsTab] : []), { language: 'curl', code: curl }, ...rest, { language: 'Python', code: python }];
}

/** Without the private key, files are sealed as docs/file-format.md says, which curl and Python alone cannot do. */
function sealingSnippets(place: SnippetPlace, ring: string): readonly Snippet[] {
  const kms = lines(environment(place), `kms encrypt --ring ${ring} --recipient -o report.pdf.kms report.pdf`);
  const typescript = lines(
    "import { readFile, writeFile } from 'node:fs/promises';",
    "import { createClient, encryptBytes } from '@kms-appliance/client';",
    '',
    client(place),
    '// Takes the public key that the service tells; return the one you know, and any other is refused.',
    'const publicKey = (ring: { publicKey: string }) => ring.publicKey;',
    '',
    `const made = await encryptBytes(await readFile('report.pdf'), { client, ring: ${text(ring)}, publicKey });`,
    "await writeFile('report.pdf.kms', made.bytes);",
  );
  return [
    { language: 'kms', code: kms },
    { language: 'TypeScript', code: typescript },
  ];
}

/** Programs for a new API key: with the first of these rings that its flags admit, or without one. */
export function apikeySnippets(
  place: SnippetPlace,
  may: Flags,
  rings: readonly string[],
): { readonly ring?: string; readonly use?: KeyringUse; readonly snippets: readonly Snippet[] } {
  for (const ring of rings) {
    const encrypts = may.allows('keyring.encrypt', ring);
    const decrypts = may.allows('keyring.decrypt', ring);
    if (!encrypts && !decrypts) continue;
    const use = encrypts && decrypts ? 'both' : encrypts ? 'encrypt' : 'decrypt';
    return { ring, use, snippets: keyringSnippets(place, ring, use) };
  }
  return { snippets: anySnippets(place) };
}

/** Programs that any API key may run: they tell how the appliance is. */
function anySnippets(place: SnippetPlace): readonly Snippet[] {
  return [
    { language: 'curl', code: `curl -s -H ${bearer(place)} \\\n  ${quoted(`${place.baseUrl}/system/overview`)}` },
    {
      language: 'TypeScript',
      code: lines(...imports(place), '', client(place), 'console.log(await client.getOverview());'),
    },
    { language: 'Python', code: lines(ask(place, []), '', 'print(ask("/system/overview"))') },
  ];
}

export function lines(...all: readonly (string | false)[]): string {
  return `${all.filter((line) => line !== false).join('\n')}\n`;
}

/** A word of the shell. */
function quoted(word: string): string {
  return /^[A-Za-z0-9_./:@%+-]+$/.test(word) ? word : shellQuoted(word);
}

/** A text of TypeScript. */
export function text(value: string): string {
  return /['\\\n]/.test(value) ? JSON.stringify(value) : `'${value}'`;
}

export function environment({ baseUrl, keyFile }: SnippetPlace): string {
  const file = keyFile === undefined ? '' : ` KMS_API_KEY_FILE=${quoted(keyFile)}`;
  return `export KMS_SERVER=${quoted(baseUrl)}${file}`;
}

function bearer({ keyFile }: SnippetPlace): string {
  return keyFile === undefined
    ? '"Authorization: Bearer $KMS_API_KEY"'
    : `"Authorization: Bearer $(cat ${quoted(keyFile)})"`;
}

export function post(place: SnippetPlace, body: string, path: string): string {
  return `curl -s -H ${bearer(place)} \\
  -H 'Content-Type: application/json' \\
  -d ${body} \\
  ${quoted(place.baseUrl + path)}`;
}

export function imports({ keyFile }: SnippetPlace): readonly string[] {
  return [
    ...(keyFile === undefined ? [] : ["import { readFile } from 'node:fs/promises';"]),
    "import { createClient } from '@kms-appliance/client';",
  ];
}

export function client({ baseUrl, keyFile }: SnippetPlace): string {
  const make = (key: string): string => `const client = createClient({ baseUrl: ${text(baseUrl)}, ${key} });`;
  if (keyFile === undefined) return make('apiKey: process.env.KMS_API_KEY');
  return `const apiKey = (await readFile(${text(keyFile)}, 'utf8')).trim();\n${make('apiKey')}`;
}

export function apiKeyInPython({ keyFile }: SnippetPlace): string {
  return keyFile === undefined ? 'os.environ["KMS_API_KEY"]' : `open(${JSON.stringify(keyFile)}).read().strip()`;
}

/** A function of Python that sends a request; without a body it is a GET. */
export function ask(place: SnippetPlace, modules: readonly string[]): string {
  const imported = [...modules, 'json', ...(place.keyFile === undefined ? ['os'] : [])].sort().join(', ');
  return `import ${imported}
from urllib.request import Request, urlopen

api_key = ${apiKeyInPython(place)}

def ask(path, body=None):
    headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(${JSON.stringify(place.baseUrl)} + path, data, headers)) as answer:
        return json.load(answer)`;
}
