// Options that several commands have in the same form.
import type { GrammarCommand } from '../grammar-command.ts';

export function paged(command: GrammarCommand): GrammarCommand {
  return command
    .option('--limit <N>', 'one page with at most so many (default: all there are)')
    .option('--cursor <CURSOR>', 'the page after the one that named this cursor');
}

export function searched(command: GrammarCommand): GrammarCommand {
  return command
    .option('--start <TIME>', 'from this time on: milliseconds since 1970 or a date')
    .option('--end <TIME>', 'up to and with this time')
    .option('--limit <N>', 'at most so many (default: 100)')
    .option('--all', 'all there are')
    .option('--cursor <CURSOR>', 'the page after the one that named this cursor');
}

export function byId(command: GrammarCommand): GrammarCommand {
  return command.option('--id', 'what is given is an id');
}

export function destroying(command: GrammarCommand): GrammarCommand {
  return command.option('--yes', "don't ask");
}
