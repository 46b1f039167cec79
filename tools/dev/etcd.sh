# Finding, starting and stopping etcd. Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

ETCD_MIN=3.5.13      # older ones renew leases they no longer own and lose watch events
ETCD_BUILD=3.6.16    # what tools/etcd builds
ETCD_QUOTA=${DEV_ETCD_QUOTA:-$((8 * 1024 * 1024 * 1024))}

# --- which etcd -----------------------------------------------------------------------------------------------------

etcd_version() { # BINARY
  "$1" --version 2>/dev/null | sed -n 's/^etcd Version: *\([0-9][0-9.]*\).*/\1/p'
}

is_current() { # VERSION
  [ -n "$1" ] && [ "$(printf '%s\n' "$ETCD_MIN" "$1" | sort -V | head -n 1)" = "$ETCD_MIN" ]
}

# Sets ETCD, the binary to use.
need_etcd() {
  local built=$CACHE/etcd-$ETCD_BUILD
  if ETCD=$(command -v etcd) && is_current "$(etcd_version "$ETCD")"; then return; fi
  ETCD=$built/etcd
  if [ -x "$ETCD" ]; then return; fi
  if can_build_etcd && build_etcd "$built"; then return; fi
  need_distribution_etcd
}

# Go 1.21 and newer fetch by themselves the toolchain that a go.mod asks for.
can_build_etcd() {
  local version
  command -v go >/dev/null && [ -x "$ROOT/tools/etcd/build.sh" ] || return 1
  version=$(go env GOVERSION 2>/dev/null) || return 1
  version=${version#go}
  [ "$(printf '%s\n' 1.21 "$version" | sort -V | head -n 1)" = 1.21 ] ||
    { say "Go $version is too old to build etcd (1.21 or newer does)"; return 1; }
}

build_etcd() { # DIRECTORY
  local log=$CACHE/build-etcd.log
  mkdir -p "$CACHE"
  (
    flock 8
    if [ -x "$1/etcd" ]; then exit 0; fi
    say "building etcd $ETCD_BUILD once, into $1"
    rm -rf "$1.part"
    mkdir -p "$1.part"
    "$ROOT/tools/etcd/build.sh" "$1.part" >"$log" 2>&1 8>&- </dev/null && [ -x "$1.part/etcd" ] || exit 1
    rm -rf "$1"
    mv "$1.part" "$1"
  ) 8>"$CACHE/.build-etcd-lock" || { say "building etcd failed; see $log"; return 1; }
}

# Unpacked, not installed: the package would start a service on the default ports.
need_distribution_etcd() {
  local dir=$CACHE/etcd-distribution version
  ETCD=$(command -v etcd) || ETCD=$dir/usr/bin/etcd
  if [ ! -x "$ETCD" ]; then
    command -v apt-get >/dev/null && command -v dpkg >/dev/null ||
      die "no etcd: put etcd $ETCD_MIN or newer into PATH, or install Go to have one built"
    mkdir -p "$dir"
    [ "$(id -u)" -ne 0 ] || apt_update
    (cd "$dir" && rm -f ./*.deb && apt-get download -q -o APT::Sandbox::User=root etcd-server >&2 && dpkg -x ./*.deb .) ||
      die "no etcd: put etcd $ETCD_MIN or newer into PATH, or install Go to have one built"
    rm -f "$dir"/*.deb
  fi
  version=$(etcd_version "$ETCD")
  is_current "$version" ||
    say "WARNING: etcd $version of the distribution is older than $ETCD_MIN and can lose watch events; for trials only"
}

# --- one cluster per instance ---------------------------------------------------------------------------------------

# STATE/etcd: members (one a line: name, client port, peer port), binary, and per member data, log, pid.
etcd_members() { cat "$STATE/etcd/members"; }

etcd_endpoints() {
  local name client peer out=
  while read -r name client peer; do out+=",http://$(etcd_host):$client"; done < <(etcd_members)
  printf '%s\n' "${out#,}"
}

etcd_data_argument() { printf -- '--data-dir=%s/etcd/%s/data\n' "$STATE" "$1"; }

etcd_member_pid() { verified_pid "$STATE/etcd/$1/pid" "$(etcd_data_argument "$1")"; }

is_old_etcd() { ! is_current "$(etcd_version "$(read_line "$STATE/etcd/binary")")"; }

# Below the range that outgoing connections take theirs from.
free_port() {
  local port
  while :; do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && [[ " ${*} " != *" $port "* ]]; then
      printf '%s\n' "$port"
      return
    fi
  done
}

choose_members() {
  local count=${DEV_ETCD_MEMBERS:-1} taken=() i client peer
  case $count in 1|3) ;; *) usage_error "DEV_ETCD_MEMBERS '$count': 1 or 3" ;; esac
  : >"$STATE/etcd/members.part"
  for ((i = 1; i <= count; i++)); do
    client=$(free_port ${taken[@]+"${taken[@]}"})
    peer=$(free_port "$client" ${taken[@]+"${taken[@]}"})
    taken+=("$client" "$peer")
    printf 'e%s %s %s\n' "$i" "$client" "$peer" >>"$STATE/etcd/members.part"
  done
  mv "$STATE/etcd/members.part" "$STATE/etcd/members"
}

start_etcd() {
  local tries
  if [ -e "$STATE/etcd/members" ]; then
    start_members || die "etcd does not start; see $STATE/etcd/*/log"
    return
  fi
  # Another program can take a port between the look and the start.
  for tries in 1 2 3; do
    choose_members
    if start_members; then return; fi
    [ "$tries" -lt 3 ] || break
    stop_etcd
    grep -qs 'address already in use' "$STATE"/etcd/*/log || break
    rm -rf "$STATE"/etcd/e*
  done
  rm -f "$STATE/etcd/members"
  die "etcd does not start; see $STATE/etcd/*/log"
}

start_members() {
  local name client peer cluster='' binary
  binary=$(read_line "$STATE/etcd/binary")
  [ -x "$binary" ] || die "etcd was $binary and is gone; ./dev down, then ./dev up finds another"
  while read -r name client peer; do cluster+=",$name=http://127.0.0.1:$peer"; done < <(etcd_members)
  while read -r name client peer; do
    start_member "$binary" "${cluster#,}" "$name" "$client" "$peer"
  done < <(etcd_members)
  while read -r name client peer; do
    wait_until 30 member_settled "$name" "$client" && is_healthy "$client" || return 1
  done < <(etcd_members)
}

start_member() { # BINARY CLUSTER NAME CLIENT_PORT PEER_PORT
  local dir=$STATE/etcd/$3
  if etcd_member_pid "$3" >/dev/null; then return; fi
  mkdir -p "$dir/data"
  chmod 700 "$dir/data"
  setsid "$1" --name="$3" "$(etcd_data_argument "$3")" \
    --listen-client-urls="http://$(etcd_host):$4" --advertise-client-urls="http://$(etcd_host):$4" \
    --listen-peer-urls="http://127.0.0.1:$5" --initial-advertise-peer-urls="http://127.0.0.1:$5" \
    --initial-cluster="$2" --initial-cluster-token="$STATE" --initial-cluster-state=new \
    --quota-backend-bytes="$ETCD_QUOTA" >>"$dir/log" 2>&1 </dev/null 9>&- &
  printf '%s\n' $! >"$dir/pid"
}

is_healthy() { http_get "$(etcd_host):$1" /health | grep -q '"health":"true"'; }

# Healthy, or not worth waiting for.
member_settled() { # NAME CLIENT_PORT
  is_healthy "$2" || ! is_running "$(read_line "$STATE/etcd/$1/pid")"
}

is_etcd_up() {
  local name client peer
  [ -e "$STATE/etcd/members" ] || return 1
  while read -r name client peer; do
    etcd_member_pid "$name" >/dev/null || return 1
  done < <(etcd_members)
}

stop_etcd() {
  local dir pid
  for dir in "$STATE"/etcd/e*/; do
    [ -d "$dir" ] || continue
    dir=${dir%/}
    for pid in $(pids_with_argument "$(etcd_data_argument "${dir##*/}")"); do
      kill_and_wait "$pid" TERM 10 ||
        { say "WARNING: etcd, process $pid, did not stop; killing it"; kill_and_wait "$pid" KILL 5 || true; }
    done
    rm -f "$dir/pid"
  done
}

etcd_command() {
  local name client peer pid status=0 ctl what=${1:-}
  [ $# -eq 0 ] || shift
  case $what in
    pid)
      take_no_arguments 'etcd pid' "$@"
      need_instance
      while read -r name client peer; do
        if pid=$(etcd_member_pid "$name"); then printf '%s\n' "$pid"; else say "etcd member $name is not running"; status=1; fi
      done < <(etcd_members)
      return $status ;;
    endpoints)
      take_no_arguments 'etcd endpoints' "$@"
      need_instance
      etcd_endpoints ;;
    ctl)
      need_instance
      ctl=$(dirname "$(read_line "$STATE/etcd/binary")")/etcdctl
      [ -x "$ctl" ] || ctl=$(command -v etcdctl) || die "no etcdctl beside $(read_line "$STATE/etcd/binary") or in PATH"
      # Only 3.4 and older look at it, and newer ones complain.
      if is_old_etcd; then export ETCDCTL_API=3; fi
      exec "$ctl" --endpoints="$(etcd_endpoints)" "$@" ;;
    *) usage_error "etcd takes pid, endpoints or ctl, got '$what'" ;;
  esac
}
