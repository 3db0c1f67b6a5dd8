// Work on a file, from choosing where its result goes to the end: how far it is, stopping it, and what came of it.
import { useEffect, useRef } from 'hono/jsx/dom';
import { announce } from '../announce.ts';
import { bytesText } from '../overview/amounts.ts';
import { FieldProblems } from '../parts/form.tsx';
import { useState } from '../parts/state.ts';
import { fileTroubleText, isStopped } from './file-trouble.ts';
import { destinationFor, mostInMemory, writesToDisk } from './saving.ts';
import { transfer } from './transfer.ts';

export type Work<Answer> =
  | { readonly is: 'idle' }
  | { readonly is: 'running'; readonly read: number; readonly size: number; readonly stop: () => void }
  | { readonly is: 'stopped' }
  | { readonly is: 'failed'; readonly text: string }
  | { readonly is: 'done'; readonly saved: string; readonly answer: Answer };

interface FileStream<Answer> extends ReadableWritablePair<Uint8Array, Uint8Array> {
  readonly answer: Promise<Answer>;
}

export interface WorkInput<Answer> {
  readonly file: File;
  /** Of what is saved. */
  readonly name: string;
  readonly stream: (signal: AbortSignal) => FileStream<Answer>;
}

/** `run` throws `FieldProblems` where the file cannot be worked on at all; whatever else comes of it is the state. */
export function useWork<Answer>(): [Work<Answer>, (input: WorkInput<Answer>) => Promise<void>] {
  const [work, setWork] = useState<Work<Answer>>({ is: 'idle' });
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);

  const run = async ({ file, name, stream }: WorkInput<Answer>): Promise<void> => {
    if (!writesToDisk() && file.size > mostInMemory) {
      throw new FieldProblems({
        file: `This browser holds a whole file in memory before it is saved: ${bytesText(mostInMemory)} at most. Use a browser that lets pages write files, or the command line.`,
      });
    }
    const stopping = new AbortController();
    running.current = stopping;
    const { signal } = stopping;
    try {
      const destination = await destinationFor(name);
      const tell = (read: number): void => {
        if (!signal.aborted) setWork({ is: 'running', read, size: file.size, stop: () => stopping.abort() });
      };
      tell(0);
      const through = stream(signal);
      const saved = await transfer({ file, through, destination, signal, onProgress: tell });
      announce(saved);
      setWork({ is: 'done', saved, answer: await through.answer });
    } catch (error) {
      setWork(isStopped(error) ? { is: 'stopped' } : { is: 'failed', text: fileTroubleText(error) });
    }
  };
  return [work, run];
}
