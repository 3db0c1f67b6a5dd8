// What the server side reads of its process: the one file of it that does. Options of commands come through the CLI.

export function environment(name: string): string | undefined {
  return process.env[name];
}

/** The user that the process acts as; undefined where the system has no such thing. */
export function userId(): number | undefined {
  return process.getuid?.();
}

/** The groups that the process acts for; none where the system has no such thing. */
export function groupIds(): readonly number[] {
  const own = process.getegid?.();
  return [...(process.getgroups?.() ?? []), ...(own === undefined ? [] : [own])];
}
