# Mounting and unmounting nodes. Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

mount_point() { printf '%s/mnt/%s\n' "$STATE" "$1"; }
node_dir() { printf '%s/nodes/%s\n' "$STATE" "$1"; }

known_nodes() {
  local dir
  for dir in "$STATE"/nodes/*/; do
    if [ -d "$dir" ]; then basename "$dir"; fi
  done | sort -V
}

need_node() {
  need_instance
  [ -d "$(node_dir "$1")" ] ||
    die "there is no node $1, only: $(known_nodes | tr '\n' ' ')- ./dev up ${1#n} adds nodes up to it"
}

# From the kernel's table: looking at the directory itself could hang.
is_mounted() { awk -v dir="$1" '$2 == dir { found = 1 } END { exit !found }' /proc/self/mounts; }

# The daemon is the process that was given this pid file.
node_pid() { verified_pid "$(node_dir "$1")/pid" "$(node_dir "$1")/pid"; }

is_serving() { is_mounted "$(mount_point "$1")" && node_pid "$1" >/dev/null; }

product() { # BINARY ARGS...; runs etcfs or etcfsctl of the last build
  local binary=$1; shift
  JAVA_HOME=$JAVA_HOME "$DIST/bin/$binary" "$@"
}

old_etcd_argument() { if is_old_etcd; then echo --allow-old-etcd; fi; }

make_filesystem() {
  local out=$STATE/mkfs.log
  # shellcheck disable=SC2046
  product etcfs mkfs "$(read_line "$STATE/device")" --name "$(read_line "$STATE/name")" --etcd "$(etcd_endpoints)" \
    $(old_etcd_argument) >"$out" 2>&1 </dev/null || { cat "$out" >&2; die "mkfs failed"; }
}

# A node runs from a copy of the build, so that building again does not pull the classes from under it.
copy_build() { # NODE
  local dir; dir=$(node_dir "$1")
  rm -rf "$dir/dist"
  cp -a "$DIST" "$dir/dist"
}

mount_node() { # NODE
  local node=$1 dir point status=0
  dir=$(node_dir "$node")
  point=$(mount_point "$node")
  mkdir -p "$dir"
  # A dead entry is left for the product to clear; mkdir would fail on it.
  is_mounted "$point" || mkdir -p "$point"
  copy_build "$node"
  rm -f "$dir/pid"
  # Output goes to a file, so that no daemon can hold the caller's pipe.
  # shellcheck disable=SC2046,SC2086
  JAVA_HOME=$JAVA_HOME in_network "$node" timeout 100 "$dir/dist/bin/etcfs" mount "$(read_line "$STATE/name")" "$point" \
    --etcd "${DEV_MOUNT_ETCD:-$(etcd_endpoints)}" --device "$(read_line "$STATE/device")" --node "$node" $(fencer_argument) \
    --pid-file "$dir/pid" --log-file "$dir/log" $(old_etcd_argument) ${DEV_MOUNT_ARGS:-} \
    >"$dir/mount.out" 2>&1 </dev/null 9>&- || status=$?
  [ $status -eq 0 ] || { say "$node: mount failed with $status: $(tail -n 3 "$dir/mount.out")"; return 1; }
  is_mounted "$point" || { say "$node: mount returned 0, but $point is not mounted"; return 1; }
}

# The kernel offers FUSE over io_uring to new mounts while this says so. It is the whole machine's: if the mounts are to use it, it is on just while they are made,
# and whoever else does that (the tests of module linux) waits meanwhile.
URING_PARAMETER=/sys/module/fuse/parameters/enable_uring
URING_LOCK=/run/lock/etcfs-enable-uring

wants_uring() { [[ " ${DEV_MOUNT_ARGS:-} " =~ ' --transport'[=\ ]+'uring ' ]]; }

with_uring() { # COMMAND...
  if ! wants_uring || [ ! -w "$URING_PARAMETER" ]; then "$@"; return; fi
  (
    flock 7
    before=$(cat "$URING_PARAMETER")
    trap 'echo "$before" >"$URING_PARAMETER"' EXIT
    echo Y >"$URING_PARAMETER"
    "$@" 7>&-
  ) 7>"$URING_LOCK"
}

# One JVM a node: started together, they share the wait.
mount_nodes() { # NODE...
  with_uring mount_nodes_now "$@"
}

mount_nodes_now() { # NODE...
  local node jobs=() failed=0 job
  for node in "$@"; do
    mount_node "$node" & jobs+=($!)
  done
  for job in ${jobs[@]+"${jobs[@]}"}; do wait "$job" || failed=1; done
  return $failed
}

# Ends with the daemon gone; 1 and a message if the mount is busy.
unmount_node() { # NODE SECONDS
  local node=$1 point pid out status=0
  point=$(mount_point "$node")
  out=$(node_dir "$node")/umount.out
  pid=$(node_pid "$node") || pid=
  if is_mounted "$point"; then
    if [ -n "$pid" ]; then
      JAVA_HOME=$JAVA_HOME timeout "$2" "$(node_dir "$node")/dist/bin/etcfs" umount "$point" >"$out" 2>&1 </dev/null 9>&- || status=$?
    else
      umount "$point" >"$out" 2>&1 || umount -l "$point" >"$out" 2>&1 || status=$?
    fi
    [ $status -eq 0 ] || { say "$node: umount failed with $status: $(grep . "$out" | tail -n 1)"; return 1; }
  fi
  if [ -n "$pid" ]; then
    wait_until "$2" is_gone "$pid" || { say "$node: unmounted, but process $pid goes on"; return 1; }
  fi
  rm -f "$(node_dir "$node")/pid"
}

# Leaves neither process nor mount, whatever state the node is in. A thread stuck in the kernel keeps even a killed
# process alive until the connection is aborted, which umount -f does.
destroy_node() { # NODE
  local node=$1 point pid
  point=$(mount_point "$node")
  for pid in $(pids_with_argument "$(node_dir "$node")/pid"); do
    kill_and_wait "$pid" KILL 2 || { umount -f "$point" 2>/dev/null || true; kill_and_wait "$pid" KILL 10 || say "WARNING: $node: process $pid does not die"; }
  done
  while is_mounted "$point"; do
    umount -l "$point" || { say "WARNING: $node: cannot unmount $point"; break; }
  done
  rm -f "$(node_dir "$node")/pid"
}

print_mounts() {
  local node found=1
  need_instance
  for node in $(known_nodes); do
    if is_mounted "$(mount_point "$node")"; then mount_point "$node"; found=0; fi
  done
  [ $found -eq 0 ] || say "no node is mounted"
  return $found
}

print_pid() { # NODE
  need_node "$1"
  node_pid "$1" || die "$1 is not running; ./dev mount $1 starts it"
}

print_log() {
  [ $# -eq 1 ] || usage_error "logs takes one node, for example: ./dev logs n1"
  if [ "$1" = etcd ]; then need_instance; cat "$STATE"/etcd/*/log; return; fi
  check_node_name "$1"
  need_node "$1"
  [ -e "$(node_dir "$1")/log" ] || die "$1 has written no log yet"
  cat "$(node_dir "$1")/log"
}

mount_command() { # NODE
  need_root
  need_node "$1"
  lock_instance
  need_node "$1"
  is_etcd_up || die "etcd is not running; ./dev up starts all that is missing"
  if is_serving "$1"; then say "$1 is mounted"; mount_point "$1"; return; fi
  build
  mount_nodes "$1"
  mount_point "$1"
}

umount_command() { # NODE
  need_root
  need_node "$1"
  lock_instance
  need_node "$1"
  is_mounted "$(mount_point "$1")" || die "$1 is not mounted"
  need_jdk
  unmount_node "$1" "${DEV_DOWN_LIMIT_S:-20}"
}

ctl_command() {
  need_instance
  need_jdk
  [ -x "$DIST/bin/etcfsctl" ] || build
  product etcfsctl --etcd "$(etcd_endpoints)" --name "$(read_line "$STATE/name")" "$@"
}
