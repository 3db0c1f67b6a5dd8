// age's side of a conversation with a plugin, as in c2sp.org/age-plugin, without the product's code: it sends its first
// phase, then answers the plugin's messages.
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

/** Parses stanzas from text that arrives in pieces. */
export class Stanzas {
  #text = '';

  /** Yields the stanzas that are now complete. */
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

  /** Text after the last complete stanza. */
  get rest(): string {
    return this.#text;
  }
}

export interface Talk {
  readonly stdin: PassThrough;
  onStdout(text: string): void;
  /** The plugin's stanzas, without grease. */
  readonly said: readonly Stanza[];
}

/** Starts a conversation. `first` is age's own phase, without its end. */
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
        // age keeps its end open until the plugin has ended.
        else stdin.write(stanza(known.includes(each.type) ? 'ok' : 'unsupported'));
      }
    },
  };
}
