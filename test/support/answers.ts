// Answers that an appliance could give, one for each method of the client, made from their shapes; and altered copies
// that no appliance would give.
import { type ClientEndpointId, clientPaths, type Path } from '../../src/api/paths.ts';
import { answerShapes, things } from '../../src/client/answer-shapes.ts';

const ulid = '01jz4b8m6q3v9x2c5d7f8g9h0k';

const samples: Readonly<Record<string, unknown>> = {
  appliance: 'b0cb9df0c232d99d18e7a861bcc6403f',
  base32: 'MFRGG',
  base64: 'AAAA',
  base64url: 'AAAA',
  boolean: true,
  caller: 'local',
  count: 1,
  day: '2026-01-02',
  integer: -7,
  line: 'ada',
  managedKey: `mkey_${ulid}`,
  object: {},
  ring: 'payroll',
  ringOrNone: '',
  text: 'text',
  time: '2026-01-02T03:04:05.678Z',
  token: 'kms_secret',
  uri: 'https://kms.example/',
  word: 'aes256',
};

/** A field of an answer. */
interface Leaf {
  /** Names, and indices of items. */
  readonly place: readonly (string | number)[];
  readonly kind: string;
}

interface Sample {
  readonly answer: Record<string, unknown>;
  readonly leaves: readonly Leaf[];
}

/** An answer to the method, with every field, and with one item in each list. */
export function sampleAnswer(id: ClientEndpointId): Sample {
  const leaves: Leaf[] = [];
  const objectOf = (shape: string, place: Leaf['place']): Record<string, unknown> =>
    Object.fromEntries(
      shape
        .trim()
        .split(/\s+/)
        .filter((field) => field !== '')
        .map((field) => {
          const [, name = '', kind = '', list] = /^(\w+)\??:(\w+)(\[\])?/.exec(field) ?? [];
          const at = [...place, name, ...(list === undefined ? [] : [0])];
          const thing = things[kind];
          if (thing === undefined) leaves.push({ place: at, kind });
          const value = thing === undefined ? (samples[kind] ?? kind + ulid) : objectOf(thing, at);
          return [name, list === undefined ? value : [value]];
        }),
    );
  return { answer: objectOf(answerShapes[id], []), leaves };
}

/** A copy of the answer with `value` at that place. */
export function altered(answer: object, [name = '', ...rest]: Leaf['place'], value: unknown): object {
  const part = rest.length === 0 ? value : altered(Object(Object(answer)[name]), rest, value);
  return Array.isArray(answer) ? answer.with(Number(name), part) : { ...answer, [name]: part };
}

/** An answer that an appliance could give to a request of the client. */
export function sampleAnswerTo({ method, url }: Request): Response {
  const id = methodOf(method, new URL(url).pathname);
  return Response.json(id === undefined ? {} : sampleAnswer(id).answer);
}

/** The client's method that sends this request; undefined if there is none. */
export function methodOf(method: string, pathname: string): ClientEndpointId | undefined {
  const found = Object.entries<Path>(clientPaths).find(
    ([, [verb, path]]) => verb === method && new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
  );
  return found?.[0] as ClientEndpointId | undefined; // a key of `clientPaths`
}
