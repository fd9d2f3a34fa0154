# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Bash completion of diwarp's tools: the options that --help lists, and the words that it names for
# the value of one, as in --gso on|off. Words in capitals stand for values that are completed as file
# names, as all others are.

_diwarp() {
  local tool=$1 current=$2 previous=$3 help values=
  help=$("$tool" --help 2>/dev/null) || return
  [[ $previous != --* ]] || values=$(sed -nE "s/^ +$previous (\[?)([a-z0-9-]+(\|[A-Za-z0-9-]+)+).*/\2/p" <<<"$help")
  if [[ -n $values ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(tr '|' '\n' <<<"$values" | grep '[a-z]')" -- "$current")
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(grep -oE '^ +(-., ?)?--[a-z0-9-]+' <<<"$help" |
      grep -oE '\-\-[a-z0-9-]+')" -- "$current")
  fi
}

complete -o default -F _diwarp diwarp-pingpong diwarp-bandwidth diwarp-compare diwarp-info \
  diwarp-takeover diwarp-rping diwarp-memory diwarp-stat diwarp-switch diwarp-lab diwarp-run
