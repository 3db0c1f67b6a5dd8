// The scripts of `kms completion`. Each hands the words that were typed to `kms __complete` and offers what comes back,
// so that a script that is installed once knows the commands of every version to come.

import type { shells } from '../grammar/option-sets.ts';

export function scriptFor(shell: (typeof shells)[number]): string {
  return { bash, zsh, fish }[shell];
}

/** Shell text as it is, but that `@{` stands for a dollar sign and a brace, which here would begin a placeholder. */
function shell({ raw }: TemplateStringsArray): string {
  return raw.join('').replaceAll('@{', '${');
}

// Bash cuts words at characters such as : and =, too. What stands together is one word here; and since bash puts a
// candidate in the place of the last cut alone, the part before that is taken off again. A candidate is somebody's
// text: it is quoted as its place needs it, and left out where no quoting helps, as for a `!` of the history in double
// quotes.
const bash = shell`# bash completion for kms
_kms() {
  local line=@{COMP_LINE:0:COMP_POINT} piece rest i mode candidate head quote= character
  for ((i = 0; i < @{#line}; i++)); do
    character=@{line:i:1}
    case $quote$character in
      \\ | \"\\) ((i++)) ;;
      \' | \")
        quote=$character
        # Where backslashes count as well, no quoting is safe.
        [[ @{line:i-1:2} == \$\' ]] && return ;;
      \'\' | \"\") quote= ;;
    esac
  done
  local -a words=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=@{COMP_WORDS[i]}
    rest=@{line#"@{line%%[![:space:]]*}"}
    ((i == COMP_CWORD)) && piece=$rest
    if [[ @{#words[@]} -eq 0 || $rest != "$line" ]]; then words+=("$piece"); else words[-1]+=$piece; fi
    line=@{rest#"$piece"}
  done
  for i in "@{!words[@]}"; do
    words[i]=@{words[i]//[\"\'\\]/}
  done
  local current=@{words[-1]} last=@{COMP_WORDS[COMP_CWORD]}
  [[ -n $last && -z @{last//["$COMP_WORDBREAKS"]/} ]] && last=
  last=@{last//[\"\'\\]/}
  head=@{current%"$last"}
  COMPREPLY=()
  {
    read -r mode
    while IFS=$'\t' read -r candidate _; do
      candidate=@{candidate#"$head"}
      case $quote in
        \') candidate=@{candidate//\'/\'\\\'\'} ;;
        \")
          [[ $candidate == *!* ]] && continue
          candidate=@{candidate//\\/\\\\}
          candidate=@{candidate//\"/\\\"}
          candidate=@{candidate//\$/\\\$}
          candidate=@{candidate//\`/\\\`} ;;
        *) printf -v candidate %q "$candidate" ;;
      esac
      COMPREPLY+=("$candidate")
    done
  } < <("@{words[0]/#\~/$HOME}" __complete -- "@{words[@]:1}" 2>/dev/null)
  case $mode in
    files) compopt -o default 2>/dev/null ;;
    directories) compopt -o dirnames 2>/dev/null ;;
  esac
}
complete -F _kms kms
`;

const zsh = shell`#compdef kms
_kms() {
  local -a answer values shown
  local line mode
  answer=("@{(@f)$(@{~@{(Q)words[1]}} __complete -- "@{(@Q)words[2,CURRENT-1]}" "@{(Q)PREFIX}" 2>/dev/null)}")
  mode=$answer[1]
  for line in "@{(@)answer[2,-1]}"; do
    [[ -n $line ]] || continue
    values+=("@{line%%$'\t'*}")
    shown+=("@{line%%$'\t'*}@{@{line#*$'\t'}:+  -- @{line#*$'\t'}}")
  done
  case $mode in
    files) [[ $PREFIX == --*=* ]] && compset -P '*='; _files ;;
    directories) [[ $PREFIX == --*=* ]] && compset -P '*='; _files -/ ;;
    *) (( @{#values} )) && compadd -l -d shown -a values ;;
  esac
}
if [[ @{funcstack[1]} == _kms ]]; then _kms "$@"; else compdef _kms kms; fi
`;

const fish = shell`# fish completion for kms
function __kms_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct | string replace -r '^[\'"]' '')
    set -l program (string replace -r '^~' -- "$HOME" "$words[1]")
    set -e words[1]
    set -l answer (command $program __complete -- $words "$current" 2>/dev/null)
    set -l head (string match -r -- '^--[^=]*=' "$current")
    set -l path (string replace -- "$head" '' "$current")
    switch "$answer[1]"
        case files
            string replace -r -- '^' "$head" (__fish_complete_path "$path")
        case directories
            string replace -r -- '^' "$head" (__fish_complete_directories "$path" '')
        case '*'
            set -e answer[1]
            printf '%s\n' $answer
    end
end
complete -c kms -f -a '(__kms_complete)'
`;
