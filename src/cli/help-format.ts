// Layout of a command's help.
import { type Command, Help, type Option } from 'commander';

/** Commander's help with commands before options, and those of every command last. */
export function formatHelp(this: unknown, command: Command, help: Help): string {
  const isRoot = command.parent === null;
  const options = help.visibleOptions(command);
  if (isRoot) help.visibleOptions = () => [];
  const text = Help.prototype.formatHelp.call(help, command, help);
  help.showGlobalOptions = true;
  const isHidden = ({ long }: Option) => command.options.some((each) => each.long === long);
  const last = isRoot ? options : help.visibleGlobalOptions(command).filter((option) => !isHidden(option));
  const width = Math.max(help.padWidth(command, help), ...last.map((option) => help.optionTerm(option).length));
  const items = last.map((option) =>
    help.formatItem(help.optionTerm(option), width, help.optionDescription(option), help),
  );
  const title = isRoot ? 'Options of every command:' : 'Global options:';
  return [text.trimEnd(), '', ...help.formatItemList(title, items, help)].join('\n');
}

export function styleTitle(title: string): string {
  return `\x1b[1m${title}\x1b[22m`;
}
