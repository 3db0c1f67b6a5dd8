// How far the threads of the tests' process step back for each other.
import { readdirSync, readFileSync } from 'node:fs';

/** The nice values of this process's threads, of the first one first. */
export function threadPriorities(): number[] {
  const threads = readdirSync('/proc/self/task').sort((a, b) => Number(a) - Number(b));
  // proc_pid_stat(5): field 19, counted from behind the name, which is field 2 and may hold spaces.
  const fields = (thread: string) => readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ')[1]?.split(' ');
  return threads.map((thread) => Number(fields(thread)?.[16]));
}
