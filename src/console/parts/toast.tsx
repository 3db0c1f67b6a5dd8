// Short messages about what was done, told to those who see and to those who hear. They go by themselves, and nothing is said in them alone.
import { useEffect } from 'hono/jsx/dom';
import { useState } from './state.ts';

interface Message {
  readonly id: number;
  readonly text: string;
}

const shownFor = 9000;
let count = 0;
let tell: ((message: Message) => void) | undefined;

export function toast(text: string): void {
  tell?.({ id: ++count, text });
}

/** Stands once in the shell. */
export function Toasts() {
  const [message, setMessage] = useState<Message | undefined>(undefined);
  useEffect(() => {
    tell = setMessage;
  }, []);
  useEffect(() => {
    if (!message) return;
    const timer = setTimeout(() => setMessage(undefined), shownFor);
    return () => clearTimeout(timer);
  }, [message]);
  return (
    <div role="status" data-toasts>
      {message && <p key={message.id}>{message.text}</p>}
    </div>
  );
}
