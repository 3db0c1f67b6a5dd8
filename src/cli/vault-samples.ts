// Samples are ciphertexts of another system, by line of a file, that must open here before anybody switches.
import type { Client } from '../client/client.ts';
import { KmsError } from '../errors.ts';
import { given } from './command.ts';
import { readSmallText } from './files.ts';
import { ownWords } from './own-words.ts';

export interface Sample {
  /** From 1. */
  readonly line: number;
  readonly key: string;
  readonly ciphertext: string;
  readonly context?: string;
  readonly associatedData?: string;
}

export interface Verdict {
  readonly line: number;
  readonly key: string;
  readonly opens: boolean;
  readonly problem?: string;
}

/** Bytes of the file, and characters of one line: a request has at most 1 MiB. */
const longestFile = 16 * 1024 * 1024;
const longestLine = 512 * 1024;
/** Samples of one request, together of about the length of one line. */
const mostTogether = 100;

/** Lines of `KEY CIPHERTEXT [context=BASE64] [associated_data=BASE64]`. Throws `invalid` for any other, by number. */
export async function readSamples(path: string): Promise<readonly Sample[]> {
  const text = await readSmallText(path, 'lines of KEY CIPHERTEXT', longestFile);
  const samples = text.split('\n').flatMap((line, index) => {
    const words = line.trim().split(/[ \t]+/);
    return words[0] === '' ? [] : [sampleOf(words, line.length, `${path}:${index + 1}`, index + 1)];
  });
  if (samples.length > 0) return samples;
  throw new KmsError('invalid', `${path} has no samples: expected lines of KEY CIPHERTEXT`);
}

function sampleOf(words: readonly string[], length: number, place: string, line: number): Sample {
  const [key = '', ciphertext = '', ...bindings] = words;
  if (length > longestLine) throw new KmsError('invalid', `${place}: expected at most ${longestLine} characters`);
  if (ciphertext === '') throw new KmsError('invalid', `${place}: expected KEY CIPHERTEXT, found one word`);
  const bound = new Map(bindings.map((each) => bindingOf(each, place)));
  if (bound.size < bindings.length) throw new KmsError('invalid', `${place}: a field is there twice`);
  const [context, associatedData] = [bound.get('context'), bound.get('associated_data')];
  return { line, key, ciphertext, ...given({ context, associatedData }) };
}

function bindingOf(text: string, place: string): [name: string, value: string] {
  const [, name, value] = /^(context|associated_data)=([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return [name, value];
  throw new KmsError('invalid', `${place}: expected context=BASE64 or associated_data=BASE64 after the ciphertext`);
}

/** Has each sample decrypted here, in the order of the lines. The plaintexts are dropped. */
export async function tryOut(client: Client, samples: readonly Sample[]): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  for (const together of inRequests(samples)) verdicts.push(...(await tryTogether(client, together)));
  return verdicts.sort((a, b) => a.line - b.line);
}

/** Samples of one key that fit into one request. */
function inRequests(samples: readonly Sample[]): Sample[][] {
  const requests: Sample[][] = [];
  for (const ofKey of Map.groupBy(samples, ({ key }) => key).values()) {
    let length = 0;
    let request: Sample[] = [];
    for (const sample of ofKey) {
      length += sample.ciphertext.length;
      if (request.length === 0 || request.length === mostTogether || length > longestLine) {
        request = [];
        requests.push(request);
        length = sample.ciphertext.length;
      }
      request.push(sample);
    }
  }
  return requests;
}

async function tryTogether(client: Client, samples: readonly Sample[]): Promise<readonly Verdict[]> {
  const items = samples.map(({ line: _, key: __, ...item }) => item);
  const answer = await client.decryptWithKey({ key: samples[0]?.key ?? '', items }).catch((error: unknown) => {
    // Without an answer, nothing is known of any sample.
    if (!(error instanceof KmsError) || error.code === 'unavailable' || error.code === 'sealed') throw error;
    return { items: items.map(() => ({ plaintext: undefined, error: error.message })) };
  });
  return samples.map(({ line, key }, index) => {
    const { plaintext, error = 'no answer' } = answer.items[index] ?? {};
    if (plaintext !== undefined) return { line, key, opens: true };
    return { line, key, opens: false, problem: problemText(error) };
  });
}

function problemText(error: string): string {
  if (/: message authentication failed$/.test(error)) return 'its key, context or associated data do not fit';
  return ownWords(error)?.message ?? error;
}
