// Snippets for managed keys: short programs that encrypt, sign or make MACs with one, by what it is for.
import { type KeyType, type KeyUse, keyTypeFacts } from '../../model/key-types.ts';
import {
  apiKeyInPython,
  ask,
  client,
  environment,
  imports,
  lines,
  post,
  type Snippet,
  type SnippetPlace,
  text,
} from './snippet-texts.ts';

interface SnippetKey {
  readonly name: string;
  readonly type: KeyType;
  readonly uses: readonly KeyUse[];
  readonly derived: boolean;
}

/** Programs for a key that the appliance holds; none for keys that neither encrypt nor sign nor make MACs. */
export function managedKeySnippets(place: SnippetPlace, key: SnippetKey): readonly Snippet[] {
  const has = (...all: readonly KeyUse[]): boolean => all.every((use) => key.uses.includes(use));
  if (has('encrypt', 'decrypt')) return encryptingSnippets(place, key);
  if (has('sign', 'verify')) return provingSnippets(place, key, signing);
  return has('mac', 'verify') ? provingSnippets(place, key, macs) : [];
}

/** Whether clients of Vault can use keys of the type. */
function isInVault(type: KeyType): boolean {
  return keyTypeFacts[type].vault !== undefined;
}

/** "hello" and the context "invoices" in base64. */
const hello = 'aGVsbG8=';
const invoices = 'aW52b2ljZXM=';

function encryptingSnippets(place: SnippetPlace, { name, type, derived }: SnippetKey): readonly Snippet[] {
  const path = `/managed-keys/${name}`;
  const context = derived ? { context: invoices } : {};
  const option = derived ? ' --context invoices' : '';
  const kms = lines(
    environment(place),
    `echo hello | kms key encrypt ${name}${option} > message.vault`,
    `kms key decrypt ${name}${option} message.vault`,
  );
  const sent = JSON.stringify({ items: [{ plaintext: hello, ...context }] });
  const curl = lines(
    `message=$(${post(place, `'${sent}'`, `${path}/encrypt`)} | grep -o 'vault:v[^"]*')`,
    post(
      place,
      `"{\\"items\\": [{\\"ciphertext\\": \\"$message\\"${derived ? `, \\"context\\": \\"${invoices}\\"` : ''}}]}"`,
      `${path}/decrypt`,
    ),
  );
  const more = derived ? ', context' : '';
  const typescript = lines(
    ...imports(place),
    '',
    client(place),
    `const key = ${text(name)};`,
    derived && "const context = Buffer.from('invoices').toString('base64');",
    '',
    "const plaintext = Buffer.from('hello').toString('base64');",
    `const made = await client.encryptWithKey({ key, items: [{ plaintext${more} }] });`,
    'const ciphertext = made.items[0]?.ciphertext;',
    `const read = await client.decryptWithKey({ key, items: [{ ciphertext${more} }] });`,
    "console.log(Buffer.from(read.items[0]?.plaintext ?? '', 'base64').toString());",
  );
  const also = derived ? ', "context": context' : '';
  const python = lines(
    ask(place, ['base64']),
    '',
    derived && 'context = base64.b64encode(b"invoices").decode()',
    'plaintext = base64.b64encode(b"hello").decode()',
    `made = ask("${path}/encrypt", {"items": [{"plaintext": plaintext${also}}]})`,
    'ciphertext = made["items"][0]["ciphertext"]',
    `read = ask("${path}/decrypt", {"items": [{"ciphertext": ciphertext${also}}]})`,
    'print(base64.b64decode(read["items"][0]["plaintext"]))',
  );
  const given = derived ? ', context=context' : '';
  const hvac = lines(
    ...hvacClient(place),
    derived && 'context = base64.b64encode(b"invoices").decode()',
    'plaintext = base64.b64encode(b"hello").decode()',
    `made = transit.encrypt_data(name=${JSON.stringify(name)}, plaintext=plaintext${given})`,
    'ciphertext = made["data"]["ciphertext"]',
    `read = transit.decrypt_data(name=${JSON.stringify(name)}, ciphertext=ciphertext${given})`,
    'print(base64.b64decode(read["data"]["plaintext"]))',
  );
  return [
    { language: 'kms', code: kms },
    { language: 'curl', code: curl },
    { language: 'TypeScript', code: typescript },
    { language: 'Python', code: python },
    ...(isInVault(type) ? [{ language: 'hvac', code: hvac } as const] : []),
  ];
}

/** How something is made that proves where a message comes from. */
interface Proof {
  /** The operation, and the last part of its path. */
  readonly verb: 'sign' | 'mac';
  /** Field of the answer, and of the request that verifies it. */
  readonly field: 'signature' | 'mac';
  readonly method: 'signWithKey' | 'macWithKey';
  /** Method of hvac, and its fields. */
  readonly hvac: { readonly method: string; readonly made: string; readonly given: string };
}

const signing: Proof = {
  verb: 'sign',
  field: 'signature',
  method: 'signWithKey',
  hvac: { method: 'sign_data', made: 'signature', given: 'signature' },
};
const macs: Proof = {
  verb: 'mac',
  field: 'mac',
  method: 'macWithKey',
  hvac: { method: 'generate_hmac', made: 'hmac', given: 'hmac' },
};

function provingSnippets(place: SnippetPlace, { name, type }: SnippetKey, proof: Proof): readonly Snippet[] {
  const { verb, field, method, hvac } = proof;
  const path = `/managed-keys/${name}`;
  const kms = lines(
    environment(place),
    'echo hello > message.txt',
    `kms key ${verb} ${name} message.txt > message.${field}`,
    `kms key verify ${name} message.txt --${field} "$(cat message.${field})"`,
  );
  const curl = lines(
    `${field}=$(${post(place, `'${JSON.stringify({ input: hello })}'`, `${path}/${verb}`)} | grep -o 'vault:v[^"]*')`,
    post(place, `"{\\"input\\": \\"${hello}\\", \\"${field}\\": \\"$${field}\\"}"`, `${path}/verify`),
  );
  const typescript = lines(
    ...imports(place),
    '',
    client(place),
    `const key = ${text(name)};`,
    '',
    "const input = Buffer.from('hello').toString('base64');",
    `const { ${field} = '' } = await client.${method}({ key, input });`,
    `const { valid } = await client.verifyWithKey({ key, input, ${field} });`,
    `console.log(${field}, valid);`,
  );
  const python = lines(
    ask(place, ['base64']),
    '',
    'message = base64.b64encode(b"hello").decode()',
    `${field} = ask("${path}/${verb}", {"input": message})["${field}"]`,
    `print(ask("${path}/verify", {"input": message, "${field}": ${field}}))`,
  );
  const named = JSON.stringify(name);
  // hvac names SHA-256 otherwise.
  const hash = type.startsWith('hmac-sha') ? `"sha2-${type.slice('hmac-sha'.length)}"` : undefined;
  const algorithm = hash === undefined ? '' : `, algorithm=${hash}`;
  const sameHash = hash === undefined ? '' : `, hash_algorithm=${hash}`;
  const inVault = lines(
    ...hvacClient(place),
    'message = base64.b64encode(b"hello").decode()',
    `${field} = transit.${hvac.method}(name=${named}, hash_input=message${algorithm})["data"]["${hvac.made}"]`,
    `print(transit.verify_signed_data(name=${named}, hash_input=message, ${hvac.given}=${field}${sameHash})["data"])`,
  );
  return [
    { language: 'kms', code: kms },
    { language: 'curl', code: curl },
    { language: 'TypeScript', code: typescript },
    { language: 'Python', code: python },
    ...(isInVault(type) ? [{ language: 'hvac', code: inVault } as const] : []),
  ];
}

/** `VAULT_ADDR` is a listener of its own, whose address the console does not know. */
function hvacClient(place: SnippetPlace): readonly string[] {
  return [
    'import base64, os',
    'import hvac',
    '',
    '# VAULT_ADDR: the address given to kms serve --vault-listen',
    `vault = hvac.Client(url=os.environ["VAULT_ADDR"], token=${apiKeyInPython(place)})`,
    'transit = vault.secrets.transit',
    '',
  ];
}
