# With DEV_DEVICE=iscsi the shared device is a logical unit of an iSCSI target: tgtd over the same file, on this host. Sourced by ./dev.
# STATE/target: port (also the number of tgtd's control socket), pid, log.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

wants_target() { # what the instance was made with counts
  [ -e "$STATE/target/port" ] || { [ "${DEV_DEVICE:-loop}" = iscsi ] && [ ! -e "$STATE/formatted" ]; }
}

check_device_kind() {
  case ${DEV_DEVICE:-loop} in loop|iscsi) ;; *) usage_error "DEV_DEVICE '${DEV_DEVICE:-}': loop or iscsi" ;; esac
}

target_name() { printf 'iqn.2025-01.io.etcfs:%s\n' "$(read_line "$STATE/name")"; }

target_portal() { printf 'portal=%s:%s\n' "$(storage_host)" "$(read_line "$STATE/target/port")"; }

target_pid() { verified_pid "$STATE/target/pid" "$(target_portal)"; }

admin() { tgtadm -C "$(read_line "$STATE/target/port")" --lld iscsi "$@" >>"$STATE/target/log" 2>&1; }

need_libiscsi() { ldconfig -p | grep -q 'libiscsi\.so\.7' || install_packages libiscsi7; }

attach_target() {
  local port
  need_commands tgtd:tgt tgtadm:tgt
  need_libiscsi
  mkdir -p "$STATE/target"
  [ -e "$STATE/target/port" ] || free_port >"$STATE/target/port"
  if ! target_pid >/dev/null; then
    port=$(read_line "$STATE/target/port")
    setsid tgtd -f -C "$port" --iscsi "$(target_portal)" >"$STATE/target/log" 2>&1 </dev/null 9>&- &
    printf '%s\n' $! >"$STATE/target/pid"
    wait_until 10 admin --op show --mode sys || die "the iSCSI target does not start: $(tail -n 3 "$STATE/target/log")"
    admin --op new --mode target --tid 1 -T "$(target_name)" &&
      admin --op new --mode logicalunit --tid 1 --lun 1 -b "$STATE/device.img" &&
      admin --op bind --mode target --tid 1 -I ALL || die "the iSCSI target can't be set up: $(tail -n 3 "$STATE/target/log")"
  fi
  printf 'iscsi://%s:%s/%s/1\n' "$(storage_host)" "$(read_line "$STATE/target/port")" "$(target_name)" >"$STATE/device.part"
  mv "$STATE/device.part" "$STATE/device"
}

stop_target() {
  local pid
  [ -e "$STATE/target/port" ] || return 0
  for pid in $(pids_with_argument "$(target_portal)"); do
    kill_and_wait "$pid" KILL 10 || say "WARNING: the iSCSI target, process $pid, does not end"
  done
}

# What nodes that vanish can't be cut off from has to be mounted so.
fencer_argument() { case $(read_line "$STATE/device") in iscsi:*) ;; *) echo --no-fencer ;; esac; }
