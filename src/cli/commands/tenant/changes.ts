// The name and the hosts that are typed for a tenant that is there. The environment does not count: what it says is meant for other commands.
import type { Cli } from '../../cli.ts';

export function typedChanges(cli: Cli): { name?: string; hosts?: readonly string[] } {
  const name = cli.isTyped('--name') ? cli.text('--name') : undefined;
  return {
    ...(name === undefined ? {} : { name }),
    ...(cli.isTyped('--host') ? { hosts: cli.list('--host') } : {}),
  };
}
