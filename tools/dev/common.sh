# Messages, argument checks, packages, processes. Sourced by ./dev, which sets ROOT.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

STATE=$(realpath -m -- "${ETCFS_DEV_DIR:-/var/tmp/etcfs-dev}")
CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/etcfs
DIST=$ROOT/cli/target/dist
# Marks a directory as ours, so that `down` never deletes one that is not.
OWNED=$STATE/.etcfs-dev

say() { printf 'dev: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
usage_error() { say "$*"; exit 2; }

read_line() { local line; IFS= read -r line <"$1" && printf '%s\n' "$line"; }

take_no_arguments() { # COMMAND ARGS...
  local command=$1; shift
  [ $# -eq 0 ] || usage_error "$command takes no argument, got '$1'"
}

take_one_node() { # COMMAND ARGS...
  local command=$1; shift
  [ $# -eq 1 ] || usage_error "$command takes one node, for example: ./dev $command n1"
  check_node_name "$1"
}

check_node_name() {
  [[ $1 =~ ^n[1-9][0-9]{0,2}$ ]] || usage_error "'$1' is not a node name; nodes are named n1, n2, ..."
}

check_state_dir() {
  [[ $STATE =~ ^/[A-Za-z0-9._/+-]+$ ]] ||
    usage_error "ETCFS_DEV_DIR '$STATE': use only letters, digits and . _ + - / in the path"
  if [ -d "$STATE" ] && [ ! -e "$OWNED" ] && [ -n "$(ls -A "$STATE")" ]; then
    die "$STATE holds other files; set ETCFS_DEV_DIR to a directory of its own"
  fi
}

need_root() {
  [ "$(id -u)" -eq 0 ] || die "mounting and loop devices need root: run it with sudo"
}

# --- packages -------------------------------------------------------------------------------------------------------

need_commands() { # COMMAND:PACKAGE...; installs the packages of the commands that are missing
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
  done
  [ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
}

install_packages() {
  command -v apt-get >/dev/null || die "missing: $*; install them with this system's package manager"
  [ "$(id -u)" -eq 0 ] || die "missing: $*; run: sudo apt-get install $*"
  say "installing $*"
  apt_update
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2 </dev/null ||
    die "could not install $*; see the message of apt-get above"
}

apt_update() {
  apt-get update -q >&2 </dev/null || say "apt-get update failed; going on with the package lists there are"
}

# --- processes ------------------------------------------------------------------------------------------------------

has_argument() { # PID ARGUMENT
  [ -r "/proc/$1/cmdline" ] && tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null | grep -Fxq -- "$2"
}

# A pid file is believed only if that process has the argument that nothing else has: pids are used again.
verified_pid() { # PIDFILE ARGUMENT
  local pid
  [ -s "$1" ] && pid=$(read_line "$1") && [[ $pid =~ ^[0-9]+$ ]] && is_running "$pid" && has_argument "$pid" "$2" &&
    printf '%s\n' "$pid"
}

# Zombies are not running: their parent may never look.
is_running() { # PID
  local stat
  { IFS= read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  stat=${stat##*) }
  [ "${stat%% *}" != Z ]
}

# For processes whose pid file was lost, or never written.
pids_with_argument() { # ARGUMENT
  local proc
  for proc in /proc/[0-9]*; do
    if has_argument "${proc#/proc/}" "$1" && is_running "${proc#/proc/}"; then printf '%s\n' "${proc#/proc/}"; fi
  done
}

wait_until() { # SECONDS COMMAND...; polls every 50 ms
  local end=$((SECONDS + $1)); shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.05
  done
}

is_gone() { ! is_running "$1"; }

kill_and_wait() { # PID SIGNAL SECONDS
  kill "-$2" "$1" 2>/dev/null || true
  wait_until "$3" is_gone "$1"
}

# --- the lock of an instance ----------------------------------------------------------------------------------------

# Held on file descriptor 9 until this script ends. Daemons are started with 9>&-.
lock_instance() {
  local held
  while :; do
    mkdir -p "$STATE"
    exec 9<"$STATE"
    flock -n 9 || { say "waiting for another ./dev on $STATE"; flock 9; }
    # `down` may have deleted the directory while we waited.
    held=$(stat -L -c %d:%i /proc/self/fd/9 2>/dev/null) || held=
    [ -n "$held" ] && [ "$held" = "$(stat -c %d:%i "$STATE" 2>/dev/null)" ] && break
    exec 9<&-
  done
}

need_instance() {
  [ -e "$OWNED" ] || die "nothing is up in $STATE; ./dev up starts it"
}

http_get() { # HOST:PORT PATH
  timeout 3 bash -c 'exec 3<>"/dev/tcp/${1%:*}/${1##*:}" && printf "GET %s HTTP/1.0\r\n\r\n" "$2" >&3 && cat <&3' \
    _ "$1" "$2" 2>/dev/null
}
