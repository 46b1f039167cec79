# The shared block device: a loop device over a sparse file. Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

check_device_size() { # sets DEVICE_BYTES
  local size=${DEV_SIZE:-8G}
  size=${size%iB}
  DEVICE_BYTES=$(numfmt --from=iec -- "${size^^}" 2>/dev/null) ||
    usage_error "DEV_SIZE '${DEV_SIZE:-}': a size such as 8G or 512M"
  [ "$DEVICE_BYTES" -ge $((64 * 1024 * 1024)) ] || usage_error "DEV_SIZE '${DEV_SIZE:-}': at least 64M"
}

# Loop devices over the file, one a line.
loops_of() { # FILE
  losetup -n -O NAME,BACK-FILE -l | awk -v file="$1" '$2 == file { print $1 }'
}

attach_loop() { # FILE; prints the device
  local file=$1 device
  device=$(loops_of "$file" | head -n 1)
  if [ -z "$device" ]; then
    make_loop_node
    device=$(losetup --direct-io=on -f --show "$file" 2>/dev/null) || device=$(losetup -f --show "$file") ||
      die "no loop device for $file; is the kernel module loop there?"
  fi
  printf '%s\n' "$device"
}

# In a container the kernel makes the device, but nobody its node.
make_loop_node() {
  local device
  [ -e /dev/loop-control ] || modprobe loop 2>/dev/null || true
  device=$(losetup -f) || die "losetup finds no free loop device; is the kernel module loop there?"
  [ -b "$device" ] || mknod -m 660 "$device" b 7 "${device#/dev/loop}" ||
    die "cannot make the device node $device"
}

is_detached() { [ -z "$(loops_of "$1")" ]; }

detach_loops() { # FILE
  local device
  for device in $(loops_of "$1"); do
    losetup -d "$device" || say "WARNING: cannot detach $device"
  done
  wait_until 5 is_detached "$1" || say "WARNING: $(loops_of "$1" | tr '\n' ' ')is still in use and detaches with its last user"
}

make_device() {
  truncate -s "$DEVICE_BYTES" "$STATE/device.img"
}

attach_device() {
  attach_loop "$STATE/device.img" >"$STATE/device.part"
  mv "$STATE/device.part" "$STATE/device"
}
