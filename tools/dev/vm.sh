# `./dev test vm`: a virtual machine, emulated, whose kernel has SCSI disks with reservations. It changes nothing on this machine: the host's files are read only in it. Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

VM_LIMIT_S=${VM_LIMIT_S:-900}
# Emulated: a /dev/kvm that opens need not run anything, and then the machine just stands still.
VM_ACCEL=${VM_ACCEL:-tcg}

need_vm() { # sets VM_KERNEL, a directory with the files of Debian's kernel package
  local package deb
  need_commands qemu-system-x86_64:qemu-system-x86 cpio:cpio busybox:busybox-static modprobe:kmod dpkg-deb:dpkg iscsistart:open-iscsi
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }') && [ -n "$package" ] || die "no kernel package linux-image-amd64: test vm needs Debian's"
  VM_KERNEL=$CACHE/$package
  mkdir -p "$CACHE"
  (
    flock 8
    if [ -e "$VM_KERNEL/complete" ]; then exit 0; fi
    say "fetching $package once, into $VM_KERNEL"
    rm -rf "$VM_KERNEL" && mkdir -p "$VM_KERNEL" && cd "$VM_KERNEL"
    apt-get download -q "$package" >&2 8>&- && deb=$(ls ./*.deb) && dpkg-deb -x "$deb" . && rm "$deb" && touch complete
  ) 8>"$CACHE/.vm-lock" || die "$package could not be fetched; see above"
}

# The modules that there are, and those that they need, first what others need.
vm_modules() { # DIRECTORY
  local found module file
  mkdir -p "$1/modules"
  : >"$1/modules/order"
  depmod -b "$VM_KERNEL" "$(basename "$VM_KERNEL"/lib/modules/*)"
  for module in target_core_mod iscsi_target_mod iscsi_tcp sd_mod virtio_pci 9pnet_virtio 9p crc32c_generic crct10dif_generic; do
    for file in $(modprobe -d "$VM_KERNEL" -S "$(basename "$VM_KERNEL"/lib/modules/*)" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" { print $2 }'); do
      found=$(basename "$file")
      grep -Fxq "$found" "$1/modules/order" || { cp "$file" "$1/modules/$found" && echo "$found" >>"$1/modules/order"; }
    done
  done
}

run_vm() { # PROGRAM, a script; prints what the machine says
  local dir; dir=$(mktemp -d)
  mkdir -p "$dir/root/bin"
  cp "$(command -v busybox)" "$dir/root/bin/busybox"
  cp "$ROOT/tools/vm/init" "$dir/root/init"
  printf '%s\n' "$1" >"$dir/root/program"
  vm_modules "$dir/root"
  (cd "$dir/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd"
  timeout "$VM_LIMIT_S" qemu-system-x86_64 -machine q35,accel=$VM_ACCEL -cpu max -m 1024 -smp 1 -nodefaults -no-reboot -display none -serial stdio \
    -kernel "$(echo "$VM_KERNEL"/boot/vmlinuz-*)" -initrd "$dir/initrd" -append 'console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on' \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap </dev/null 2>&1 || say "the virtual machine ended with $?"
  rm -rf "$dir"
}

test_vm() {
  local out classes
  need_jdk
  need_vm
  run_maven -q -pl linux -am -DskipTests test-compile >&2 </dev/null || die "the build failed; see above"
  classes=$ROOT/linux/target/test-classes:$ROOT/linux/target/classes:$ROOT/fuse/target/classes:$ROOT/core/target/classes
  out=$(mktemp)
  say "booting $(basename "$VM_KERNEL"), for up to $VM_LIMIT_S s"
  run_vm "exec '$JAVA_HOME/bin/java' -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xmx256m --enable-native-access=ALL-UNNAMED -cp '$classes' io.etcfs.linux.scsi.KernelPath /dev/sda /dev/sdb" | tee "$out"
  if grep -q '^PASSED' "$out"; then rm -f "$out"; else rm -f "$out"; die "the kernel's way to reservations failed in the virtual machine; see above"; fi
}
