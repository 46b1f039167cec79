# Sees to it that nobody hangs for ever in a mount whose daemon does. The daemon starts it, and another one if it ends: bash supervisor.sh LIMIT_S PID DIRECTORY LOG [KILL_AFTER_S]
#
# Standard input: an empty line from the daemon each second, `end` when its mount has ended, each of them twice, since a read whose time is over may have taken a part of the first.
# Standard output: the abort file of the daemon's connection (fusectl), opened while that was its own. The kernel binds an open one to its connection: written to later, when the
# number is another mount's, it does nothing.
#
# Only time in which this script ran counts, a second for each second that it waited in vain: whatever stops both (a suspended machine, a stopped virtual machine, a
# frozen container) and a clock that is set make nothing run out.
# shellcheck shell=bash

TICK_S=1
# From the abort to SIGKILL, for a daemon that is still silent.
KILL_AFTER_S=30
# A daemon that was killed has this long to be gone.
DYING_S=2

say() { # LEVEL MESSAGE...; as the daemon logs, and into the file that has that name now
  local level=$1 time; shift
  TZ=UTC printf -v time '%(%Y-%m-%dT%H:%M:%S)T.000Z' -1
  if [ "$log" = - ]; then printf '%s %s supervisor %s\n' "$time" "$level" "$*" >&2; else printf '%s %s supervisor %s\n' "$time" "$level" "$*" 2>/dev/null >>"$log"; fi
}

status_of_daemon() { # FIELD; of /proc/PID/status
  local name rest
  while IFS=$':\t' read -r name rest; do
    if [ "$name" = "$1" ]; then printf '%s\n' "${rest#"${rest%%[![:space:]]*}"}"; return; fi
  done <"/proc/$daemon/status"
} 2>/dev/null

# ptrace(2) stops it where its debugger wants, jdwp does the same from inside, and a core may take long to be written.
is_debugged() {
  local tracer dumping argument
  tracer=$(status_of_daemon TracerPid)
  dumping=$(status_of_daemon CoreDumping)
  [ "${tracer:-0}" = 0 ] && [ "${dumping:-0}" = 0 ] || return 0
  while IFS= read -r -d '' argument; do
    case $argument in -agentlib:jdwp*|-Xrunjdwp*) return 0 ;; esac
  done <"/proc/$daemon/cmdline"
  return 1
} 2>/dev/null

# Somebody has killed it, and not all of its threads have ended.
is_dying() {
  local pending
  case $(status_of_daemon State) in [ZX]*) return 0 ;; esac
  for pending in $(status_of_daemon SigPnd) $(status_of_daemon ShdPnd); do
    if (((16#$pending >> 8) & 1)); then return 0; fi
  done
  return 1
}

abort_mount() { printf 1 >&3; }

supervise() {
  local limit=$1 daemon=$2 directory=$3 log=$4 silent=0 aborted='' word result state
  # Nothing that a program prints may reach the abort file by mistake.
  exec 3>&1 1>&2
  trap '' HUP INT QUIT TERM PIPE
  cd /
  printf 'etcfs-watch' >/proc/self/comm
  while :; do
    result=0
    IFS= read -r -t $TICK_S word || result=$?
    if [ $result -eq 0 ]; then
      silent=0
      [ "$word" != end ] || return 0
    elif [ $result -le 128 ]; then
      # The kernel ends a connection when the last thread of its process is gone, so that there is nothing left to do but to say so.
      abort_mount
      say WARN "the daemon (process $daemon) has ended and $directory is still mounted: calls in it fail with ENOTCONN; etcfs mount clears it"
      return 0
    else
      silent=$((silent + TICK_S))
      if [ $silent -ge $DYING_S ] && [ -z "$aborted" ] && is_dying; then
        # A thread waits in the kernel for what only the mount's other users or the daemon itself could bring about, and nothing kills it. Its end comes with the connection's.
        abort_mount
        say WARN "the daemon (process $daemon) was killed and can't end, as it waits for its own mount: $directory is cut off"
        aborted=1
        silent=0
        limit=${5:-$KILL_AFTER_S}
      elif [ $silent -ge "$limit" ] && is_debugged; then
        silent=0
      elif [ $silent -ge "$limit" ] && [ -z "$aborted" ]; then
        state=$(status_of_daemon State)
        abort_mount
        say ERROR "the daemon (process $daemon, state $state) has given no sign of life for $silent s: $directory is cut off, calls in it fail with ENOTCONN"
        aborted=1
        silent=0
        limit=${5:-$KILL_AFTER_S}
      elif [ $silent -ge "$limit" ]; then
        say ERROR "the daemon (process $daemon, state $(status_of_daemon State)) is still silent $silent s after it was cut off: it is killed"
        kill -KILL "$daemon"
        return 0
      fi
    fi
  done
}

# Read to its end before it begins: the file may be replaced while it runs.
supervise "$@"; exit
