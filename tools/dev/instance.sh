# `up` and `down`. Every step of `up` looks whether its work is done, so it also repairs what a crash or a reboot left.
# STATE holds: name, formatted (mkfs has finished), device.img, device, target/, network, etcd/, nodes/NODE/{pid,log,dist}, mnt/NODE.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

up() {
  local count=${1:-} nodes=() node missing=() i started=$SECONDS
  [ $# -le 1 ] || usage_error "up takes one number, got '$2' as well"
  [[ $count =~ ^([1-9][0-9]{0,2})?$ ]] || usage_error "up takes the number of nodes, got '$count'"
  check_device_size
  check_device_kind
  check_network_kind
  case ${DEV_ETCD_MEMBERS:-1} in 1|3) ;; *) usage_error "DEV_ETCD_MEMBERS '${DEV_ETCD_MEMBERS:-}': 1 or 3" ;; esac
  need_root
  check_state_dir
  need_commands losetup:mount mount:mount umount:mount flock:util-linux setsid:util-linux awk:gawk find:findutils
  need_fuse
  lock_instance
  : >"$OWNED"

  for ((i = 1; i <= ${count:-2}; i++)); do nodes+=("n$i"); done
  for node in $(known_nodes); do
    [[ " ${nodes[*]} " == *" $node "* ]] || nodes+=("$node")
  done
  for node in "${nodes[@]}"; do is_serving "$node" || missing+=("$node"); done
  if [ -e "$STATE/formatted" ] && is_etcd_up && [ ${#missing[@]} -eq 0 ]; then
    say "already up"
    print_mounts
    return
  fi

  [ -e "$STATE/formatted" ] || start_afresh
  prepare
  if wants_namespaces; then make_network; fi
  start_etcd
  if wants_target; then attach_target; else attach_device; fi
  if [ ! -e "$STATE/formatted" ]; then
    make_filesystem
    : >"$STATE/formatted"
  fi
  for node in ${missing[@]+"${missing[@]}"}; do clear_stale_node "$node"; done
  mount_nodes ${missing[@]+"${missing[@]}"} || die "not all nodes are mounted; ./dev logs NODE may say why, ./dev down removes all"
  say "etcd $(etcd_version "$(read_line "$STATE/etcd/binary")") at $(etcd_endpoints)"
  say "device $(read_line "$STATE/device"), $(numfmt --to=iec-i --suffix=B "$(stat -c %s "$STATE/device.img")")"
  say "up in $((SECONDS - started)) s"
  print_mounts
}

need_fuse() {
  [ -e /dev/fuse ] || modprobe fuse 2>/dev/null || true
  [ -e /dev/fuse ] || die "no /dev/fuse: load the kernel module fuse (a container needs --device /dev/fuse)"
}

# The two builds wait for different things, so they run side by side the first time.
prepare() {
  local etcd_job
  if [ -e "$STATE/etcd/binary" ]; then
    build
    return
  fi
  need_jdk
  need_commands mvn:maven
  mkdir -p "$STATE/etcd"
  (need_etcd; printf '%s\n' "$ETCD" >"$STATE/etcd/binary") & etcd_job=$!
  build
  wait "$etcd_job" || exit 1
}

# What is left of an `up` that did not get as far as a filesystem is worth nothing.
start_afresh() {
  local hash
  stop_etcd
  stop_target
  stop_network
  if [ -e "$STATE/device.img" ]; then detach_loops "$STATE/device.img"; fi
  rm -rf "$STATE/etcd" "$STATE/device.img" "$STATE/device" "$STATE/target"
  # Two instances on one machine must not share a name: a node is locked by filesystem and node.
  hash=$(printf '%s' "$STATE" | cksum)
  if [ "$STATE" = /var/tmp/etcfs-dev ]; then echo dev; else echo "dev-${hash%% *}"; fi >"$STATE/name"
  make_device
}

clear_stale_node() { # NODE
  [ -d "$(node_dir "$1")" ] || return 0
  destroy_node "$1"
}

# Mounts in STATE, but on and in the nodes' mount points, and mounts of this filesystem elsewhere.
foreign_mounts() {
  local name=none source point type rest
  if [ -e "$STATE/name" ]; then name=$(read_line "$STATE/name"); fi
  while read -r source point type rest; do
    case $point in
      "$STATE"/mnt/n*) ;;
      "$STATE"/*) printf '%s\n' "$point" ;;
      *) if [ "$type" = fuse.etcfs ] && [ "$source" = "$name" ]; then printf '%s\n' "$point"; fi ;;
    esac
  done </proc/self/mounts
}

down() {
  local keep='' node point limit=${DEV_DOWN_LIMIT_S:-20} status=0
  case ${1:-} in --keep) keep=1; shift ;; esac
  [ $# -eq 0 ] || usage_error "down takes only --keep, got '$1'"
  [[ $limit =~ ^[1-9][0-9]*$ ]] || usage_error "DEV_DOWN_LIMIT_S '$limit': a number of seconds"
  need_root
  if [ ! -e "$OWNED" ]; then say "nothing is up in $STATE"; return; fi
  lock_instance
  if [ ! -e "$OWNED" ]; then rmdir "$STATE" 2>/dev/null || true; say "nothing is up in $STATE"; return; fi
  # Before anything is touched: without etcd these would hang, and what is mounted here keeps the directory.
  while read -r point; do say "$point is mounted, and is no node of this instance: unmount it first"; status=1; done < <(foreign_mounts)
  if [ $status -ne 0 ]; then die "nothing was done, $STATE is up as it was"; fi
  # The caller may stand in one of the mounts.
  cd "$ROOT"

  # Without a JDK the polite way is closed, not the other one.
  JAVA_HOME=$(find_jdk) || JAVA_HOME=''
  for node in $(known_nodes); do
    if is_serving "$node" && ! unmount_node "$node" "$limit"; then
      say "WARNING: $node is killed; what it had not published is lost"
    fi
    destroy_node "$node"
    rm -f "/run/etcfs/$(read_line "$STATE/name")-$node".{lock,sock}
  done
  while read -r _ point _; do
    case $point in "$STATE"/*) say "WARNING: $point is still mounted"; status=1 ;; esac
  done </proc/self/mounts
  if [ $status -ne 0 ]; then die "etcd and the device are left as they are, in $STATE"; fi
  stop_etcd
  stop_target
  stop_network
  if [ -e "$STATE/device.img" ]; then detach_loops "$STATE/device.img"; fi
  rm -f "$STATE/device"
  if [ -z "$keep" ]; then rm -rf --one-file-system -- "$STATE"; else say "data kept in $STATE"; fi
}
