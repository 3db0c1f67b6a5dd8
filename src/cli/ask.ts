// One question on the terminal, one line for an answer.
import { createInterface, type ReadLineOptions } from 'node:readline';

/** The line that was typed; empty where the input ends without one (Ctrl-D). Ctrl-C rejects. */
export function askLine(options: ReadLineOptions, question: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const terminal = createInterface(options);
    let answer = '';
    const stop = (): void => {
      reject(new DOMException('stopped', 'AbortError'));
      terminal.close();
    };
    terminal.once('SIGINT', stop);
    signal.addEventListener('abort', stop, { once: true });
    terminal.once('close', () => {
      signal.removeEventListener('abort', stop);
      resolve(answer);
    });
    terminal.question(question, (line) => {
      answer = line.trim();
      terminal.close();
    });
    if (signal.aborted) stop();
  });
}
