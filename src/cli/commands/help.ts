// `kms help`: what `--help` behind the command shows.
import type { Cli } from '../cli.ts';
import type { GrammarCommand } from '../grammar-command.ts';
import { nearest } from '../nearest.ts';

export async function run(cli: Cli): Promise<void> {
  cli.args.reduce(below, cli.grammar).help();
}

function below(command: GrammarCommand, name: string): GrammarCommand {
  const found = command.subcommands.find((each) => each.name() === name);
  if (found) return found;
  const near = nearest(
    name,
    command.subcommands.map((each) => each.name()),
  );
  return command.error(`unknown command '${name}'${near === undefined ? '' : `; did you mean ${near}?`}`);
}
