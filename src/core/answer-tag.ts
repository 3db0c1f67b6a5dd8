// Tags of answers, by which a caller learns that nothing changed. They are keyed: outside this process they mean
// nothing, and they tell neither what they stand for nor whether two callers have the same.
import { toBase64Url, utf8 } from '../crypto/bytes.ts';
import { hmacSha256 } from '../crypto/hash.ts';

export type AnswerTag = (watcher: string, path: string, content: string) => string;

export function answerTag(random: (length: number) => Uint8Array): AnswerTag {
  const mac = hmacSha256(random(32));
  return (watcher, path, content) => toBase64Url(mac(utf8(JSON.stringify([watcher, path, content]))).slice(0, 18));
}
