// Scripts of `kms completion`. Each passes the typed words to `kms __complete` and offers its candidates, so that a
// script installed once knows the commands of later versions too.

import type { shells } from '../grammar/option-sets.ts';

export function scriptFor(shell: (typeof shells)[number]): string {
  return { bash, zsh, fish }[shell];
}

/** Raw shell text, with `@{` for a dollar sign and a brace, which would begin a placeholder here. */
function shell({ raw }: TemplateStringsArray): string {
  return raw.join('').replaceAll('@{', '${');
}

// Bash also splits words at characters such as : and =. This script joins them again; and since bash replaces only the
// part after the last split, it removes the part before from each candidate. Candidates are untrusted text: they are
// quoted for their context, and left out if no quoting works, as for a history `!` in double quotes.
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
