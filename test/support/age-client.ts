// The side of age in a talk with a plugin, as c2sp.org/age-plugin has it and written without the product's code: it
// says its first phase, then answers what the plugin says.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';

export interface Stanza {
  readonly type: string;
  readonly args: readonly string[];
  readonly body: Buffer;
}

export function stanza(type: string, args: readonly string[] = [], body: Uint8Array = new Uint8Array()): string {
  const text = Buffer.from(body).toString('base64').replace(/=+$/, '');
  const lines: string[] = text.match(/.{1,64}/g) ?? [];
  if (text.length % 64 === 0) lines.push('');
  return `-> ${[type, ...args].join(' ')}\n${lines.join('\n')}\n`;
}

/** Stanzas out of text that comes in pieces. */
export class Stanzas {
  #text = '';

  /** Those that are whole by now. */
  *add(text: string): Generator<Stanza, void, void> {
    this.#text += text;
    for (;;) {
      const [whole, first = '', body = ''] = /^-> ([^\n]*)\n((?:[^\n]{64}\n)*[^\n]{0,63})\n/.exec(this.#text) ?? [];
      if (whole === undefined) return;
      this.#text = this.#text.slice(whole.length);
      const [type = '', ...args] = first.split(' ');
      const encoded = body.replaceAll('\n', '');
      const bytes = Buffer.from(encoded, 'base64');
      assert.equal(bytes.toString('base64').replace(/=+$/, ''), encoded, 'canonical base64 without padding');
      yield { type, args, body: bytes };
    }
  }

  /** What is no whole stanza. */
  get rest(): string {
    return this.#text;
  }
}

export interface Talk {
  readonly stdin: PassThrough;
  onStdout(text: string): void;
  /** What the plugin said, grease left out. */
  readonly said: readonly Stanza[];
}

/** `first` is what age says in its own phase, without its end. */
export function talk(first: string): Talk {
  const stdin = new PassThrough();
  stdin.write(`${first}${stanza('done')}`);
  const said: Stanza[] = [];
  const stanzas = new Stanzas();
  const known = ['recipient-stanza', 'file-key', 'error', 'labels', 'msg', 'done'];
  return {
    stdin,
    said,
    onStdout(text) {
      for (const each of stanzas.add(text)) {
        if (known.includes(each.type)) said.push(each);
        if (each.type === 'done') assert.equal(stanzas.rest, '', 'nothing follows the end');
        // age leaves its end open until the plugin has ended.
        else stdin.write(stanza(known.includes(each.type) ? 'ok' : 'unsupported'));
      }
    },
  };
}
