# `./dev bench`: the same program on ext4 and on EtcFS, each on a loop device over a file of the same disk. `./dev bench micro`: inner loops alone. `./dev bench many`: what
# grows with the number of files; `./dev bench large`: large directories and files.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

bench_command() {
  case ${1:-} in
    micro) shift; micro_benchmarks "$@"; return ;;
    many) shift; many_files "$@"; return ;;
    large) shift; on_two_nodes large.py "$@"; return ;;
    membership) shift; on_nodes 3 membership.py "$@"; return ;;
    takeover) shift; takeovers "$@"; return ;;
  esac
  local program=${FSBENCH:-$ROOT/tools/bench/scenarios.py}
  [ -r "$program" ] || usage_error "FSBENCH '$program' cannot be read"
  need_commands python3:python3
  if asks_for_help "$@"; then run_bench "$program" --help; return; fi
  need_root
  need_commands fio:fio tar:tar mkfs.ext4:e2fsprogs losetup:mount
  # An instance of its own; the one in use is left alone.
  BENCH_DIR=$STATE-bench
  trap 'bench_cleanup' EXIT
  bench_cleanup
  mkdir -p "$BENCH_DIR/results" "$BENCH_DIR/ext4"
  check_device_size
  bench_ext4 "$program" "$@"
  bench_etcfs "$program" "$@"
  python3 "$ROOT/tools/bench/table.py" "$BENCH_DIR/results/ext4.json" "$BENCH_DIR/results/etcfs.json"
}

micro_benchmarks() {
  [ $# -le 1 ] || usage_error "bench micro takes one regular expression, got '$2' as well"
  need_jdk
  run_maven -q -pl bench -am -Dmaven.test.skip=true package >&2 </dev/null
  # In place of this shell, so that killing it ends the benchmark and its forks; JMH 1.37 uses calls that JDK 25 warns about.
  exec "$JAVA_HOME/bin/java" "-Djava.io.tmpdir=$ROOT/bench/target" --sun-misc-unsafe-memory-access=allow -cp "$ROOT/bench/target/lib/*" io.etcfs.bench.Micro "$@"
}

many_files() { # [OPTIONS] [FILES]
  local arguments=("$@")
  # A last argument that is no option's value is the number.
  [[ ${*: -1} =~ ^[1-9][0-9]*$ ]] && [[ $# -eq 1 || ${*: -2:1} != --* ]] || arguments+=(200000)
  on_two_nodes many.py "${arguments[@]}"
}

on_nodes() { # NODES PROGRAM ARGS...; for programs that use ./dev
  local count=$1 program=$ROOT/tools/bench/$2; shift 2
  if asks_for_help "$@"; then python3 "$program" --help; return; fi
  bench_nodes "$count"
  python3 "$program" "$@" "$ROOT/dev" "${BENCH_NODES[@]}"
}

on_two_nodes() { # PROGRAM ARGS...; for programs that ask etcd and the daemons themselves
  local program=$ROOT/tools/bench/$1; shift
  if asks_for_help "$@"; then python3 "$program" --help; return; fi
  bench_nodes 2
  python3 "$program" "$@" "$("$ROOT/dev" etcd endpoints | cut -d, -f1)" "$(read_line "$ETCFS_DEV_DIR/name")" "${BENCH_NODES[@]}"
}

asks_for_help() {
  local arg
  for arg in "$@"; do
    case $arg in -h|--help) return 0 ;; esac
  done
  return 1
}

# An instance of its own with so many nodes, until this shell ends: BENCH_NODES, MOUNT,NODE each.
bench_nodes() { # COUNT
  local mounts i
  need_commands python3:python3
  BENCH_DIR=$STATE-bench
  trap 'bench_cleanup' EXIT
  bench_cleanup
  mkdir -p "$BENCH_DIR"
  export ETCFS_DEV_DIR=$BENCH_DIR/etcfs
  "$ROOT/dev" up "$1" >"$BENCH_DIR/mounts"
  mapfile -t mounts <"$BENCH_DIR/mounts"
  BENCH_NODES=()
  for ((i = 0; i < $1; i++)); do BENCH_NODES+=("${mounts[i]},n$((i + 1))"); done
}

takeovers() { # [OPTIONS]; without a fencer on a loop device, then with reservations on an iSCSI target
  local device
  for device in ${DEV_DEVICE:-loop iscsi}; do
    echo "$device: $([ "$device" = iscsi ] && echo reservations || echo 'no fencer')"
    (DEV_NETWORK=namespaces DEV_DEVICE=$device on_nodes 2 takeover.py "$@")
  done
}

run_bench() { # PROGRAM ARGS...
  local program=$1; shift
  if [ -x "$program" ]; then "$program" "$@"; else python3 "$program" "$@"; fi
}

bench_ext4() { # PROGRAM ARGS...
  local program=$1 device; shift
  say "ext4"
  truncate -s "$DEVICE_BYTES" "$BENCH_DIR/ext4.img"
  device=$(attach_loop "$BENCH_DIR/ext4.img")
  mkfs.ext4 -q -F "$device"
  mount "$device" "$BENCH_DIR/ext4"
  run_bench "$program" "$@" ext4 "$BENCH_DIR/ext4" >"$BENCH_DIR/results/ext4.json" || die "the benchmark failed on ext4"
  umount "$BENCH_DIR/ext4"
  detach_loops "$BENCH_DIR/ext4.img"
  rm -f "$BENCH_DIR/ext4.img"
}

bench_etcfs() { # PROGRAM ARGS...
  local program=$1 mounts; shift
  say "etcfs"
  export ETCFS_DEV_DIR=$BENCH_DIR/etcfs
  "$ROOT/dev" up 2 >"$BENCH_DIR/mounts"
  mapfile -t mounts <"$BENCH_DIR/mounts"
  # Our program reads the number of Raft commits by itself; of another one only the total is known.
  ETCFS_BENCH_ETCD=$("$ROOT/dev" etcd endpoints)
  export ETCFS_BENCH_ETCD
  "$ROOT/tools/bench/raft-commits" "$ETCFS_BENCH_ETCD" -- \
    bash -c 'out=$1; shift; if [ -x "$1" ]; then exec "$@"; else exec python3 "$@"; fi >"$out"' _ \
    "$BENCH_DIR/results/etcfs.json" "$program" "$@" etcfs "${mounts[@]}" >&2 || die "the benchmark failed on etcfs"
}

bench_cleanup() {
  if [ -e "$BENCH_DIR/etcfs/.etcfs-dev" ]; then ETCFS_DEV_DIR=$BENCH_DIR/etcfs "$ROOT/dev" down || true; fi
  while is_mounted "$BENCH_DIR/ext4"; do umount "$BENCH_DIR/ext4" || umount -l "$BENCH_DIR/ext4"; done
  if [ -e "$BENCH_DIR/ext4.img" ]; then detach_loops "$BENCH_DIR/ext4.img"; fi
  rm -rf --one-file-system -- "$BENCH_DIR"
}
