# The file from which Java takes classes that are loaded and linked already, and what to compile first: made by a training run, once a build.
# Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

AOT_CACHE=$DIST/lib/etcfs.aot
TRAINING_LIMIT_S=120

# A mount on an instance of its own. Without the file all works, mounting takes longer and the first seconds are slower.
train() {
  local dir=$ROOT/cli/target/training made=$ROOT/cli/target/training.aot mounts=
  if [ "$(id -u)" -ne 0 ] || [ -n "${ETCFS_DEV_NO_AOT:-}" ]; then return; fi
  # Its build takes longer than a training run may.
  need_etcd
  say "training run, for faster starts"
  rm -f "$made"
  (
    unset DEV_MOUNT_ARGS DEV_ETCD_MEMBERS ETCFS_JAVA_OPTS
    export ETCFS_DEV_DIR=$dir ETCFS_DEV_NO_BUILD=1 DEV_SIZE=1G DEV_DOWN_LIMIT_S=$TRAINING_LIMIT_S
    # What an earlier run may have left.
    "$ROOT/dev" down
    # The first node's life is recorded; it and a second one take turns.
    if ETCFS_AOT_TRAINING=$made timeout "$TRAINING_LIMIT_S" "$ROOT/dev" up 1 && mounts=$(timeout "$TRAINING_LIMIT_S" "$ROOT/dev" up 2); then
      # shellcheck disable=SC2086
      timeout "$TRAINING_LIMIT_S" "$ROOT/tools/dev/training" $mounts || say "the training run was cut short"
    fi
    # The file is made as the daemon ends.
    "$ROOT/dev" down
  ) >"$dir.log" 2>&1 </dev/null || true
  if [ -s "$made" ]; then
    mv "$made" "$AOT_CACHE"
  else
    say "no training run was possible (see $dir.log): starts take longer"
  fi
}
