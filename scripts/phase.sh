# shellcheck shell=bash
# Sourced by quickstart and run-tests, from the repository's root.
#
# phase NAME COMMAND...: runs COMMAND with its output in build/logs/NAME.log and prints one line: the name and the
# seconds it took (and ninja's progress meanwhile, on a terminal). Where it fails: the end of the log, and its name.
# Returns COMMAND's status.

mkdir -p build/logs

phase() {
  local name=$1 log=build/logs/$1.log started=$SECONDS ticker='' status=0
  shift
  printf '%-14s' "$name"
  : >"$log"
  if [ -t 1 ]; then
    while sleep 1; do
      printf '\r%-14s%4d s  %-16s' "$name" $((SECONDS - started)) "$(grep -o '^\[[0-9]*/[0-9]*\]' "$log" | tail -n 1)"
    done &
    ticker=$!
  fi
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ -n "$ticker" ]; then
    kill "$ticker"
    wait "$ticker" 2>/dev/null
    printf '\r%-40s\r%-14s' '' "$name"
  fi
  if [ $status -eq 0 ]; then
    printf '%4d s\n' $((SECONDS - started))
  else
    printf 'failed after %d s; the end of %s:\n' $((SECONDS - started)) "$log"
    tail -n "${PHASE_TAIL:-20}" "$log" | sed 's/^/  /'
  fi
  return $status
}
