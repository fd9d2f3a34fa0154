# shellcheck shell=bash
# Sourced by the scripts of dev and tools, in the top folder of the project.

# without_aslr: prints a command prefix. The sanitizers of GCC 12 and Clang 14 cannot place their
# shadow memory where the kernel randomises addresses as widely as newer ones do.
without_aslr() {
  local prefix=(setarch "$(uname -m)" -R)
  if [[ "$1" == asan-ubsan || "$1" == tsan || "$1" == fuzz ]] && "${prefix[@]}" true 2>/dev/null; then
    printf '%s\n' "${prefix[@]}"
  fi
}

# show_errors LOG: its first error and what follows, or its end.
show_errors() {
  local first
  first=$(grep -n -m 1 -E '^FAILED:|CMake Error' "$1" | cut -d: -f1)
  tail -n "+${first:-1}" "$1" | if [[ -n "$first" ]]; then head -n 60; else tail -n 60; fi
  echo "(all of it is in $1)"
}

# build_preset PRESET [ARGUMENT...]: configures and builds; arguments go to `cmake --build`.
build_preset() {
  local preset=$1 log="build/$1.log" start=$SECONDS prefix
  shift
  mapfile -t prefix < <(without_aslr "$preset")
  mkdir -p build
  echo "Building $preset ..."
  if ! { cmake --preset "$preset" &&
    "${prefix[@]}" cmake --build --preset "$preset" "$@"; } >"$log" 2>&1; then
    show_errors "$log" >&2
    echo "The build of $preset failed." >&2
    return 1
  fi
  echo "Built in $((SECONDS - start)) s"
}
