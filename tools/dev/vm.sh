# `./dev test vm`: a virtual machine, emulated, whose kernel has disks with reservations. It changes nothing on this machine: the host's files are read only in it. Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

VM_LIMIT_S=${VM_LIMIT_S:-900}
# Emulated: a /dev/kvm that opens need not run anything, and then the machine just stands still.
VM_ACCEL=${VM_ACCEL:-tcg}
# Has a kernel whose NVMe target has reservations.
VM_NEW_SUITE=trixie-backports

need_vm() { # KIND; sets VM_KERNEL, a directory with the files of one of Debian's kernel packages
  local package packages deb apt=(apt-get) cache=(apt-cache) state=$CACHE/apt-$VM_NEW_SUITE
  need_commands qemu-system-x86_64:qemu-system-x86 cpio:cpio busybox:busybox-static modprobe:kmod dpkg-deb:dpkg xz:xz-utils iscsistart:open-iscsi
  mkdir -p "$CACHE"
  if [ "$1" = nvme ]; then
    # With sources and a state of its own, beside this machine's.
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $VM_NEW_SUITE main" >"$state/sources.list"
    apt+=(-o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache")
    cache+=("${apt[@]:1}")
    "${apt[@]}" update -q >&2 || die "the list of packages of Debian's $VM_NEW_SUITE could not be fetched; see above"
  fi
  package=$("${cache[@]}" depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }') && [ -n "$package" ] || die "no kernel package linux-image-amd64: test vm needs Debian's"
  VM_KERNEL=$CACHE/$package
  (
    flock 8
    if [ -e "$VM_KERNEL/complete" ]; then exit 0; fi
    say "fetching $package once, into $VM_KERNEL"
    rm -rf "$VM_KERNEL" && mkdir -p "$VM_KERNEL" && cd "$VM_KERNEL"
    # Newer ones come in parts.
    packages=$("${cache[@]}" depends "$package" | awk '/Depends: linux-(base|binary|modules)-/ { print $2 }')
    # shellcheck disable=SC2086
    "${apt[@]}" download -q "$package" $packages >&2 8>&-
    for deb in ./*.deb; do dpkg-deb -x "$deb" . && rm "$deb"; done
    # Debian 13 has modules below /usr, and later the kernel beside them.
    if [ ! -e lib ]; then ln -s usr/lib lib; fi
    touch complete
  ) 8>"$CACHE/.vm-lock" || die "$package could not be fetched; see above"
}

# The modules that there are, and those that they need, first what others need.
vm_modules() { # DIRECTORY KIND
  local release found module file kinds
  release=$(basename "$VM_KERNEL"/lib/modules/*)
  case $2 in
    scsi) kinds='target_core_mod iscsi_target_mod iscsi_tcp sd_mod' ;;
    nvme) kinds='brd nvmet nvme_loop' ;;
  esac
  mkdir -p "$1/modules"
  : >"$1/modules/order"
  depmod -b "$VM_KERNEL" "$release"
  for module in configfs $kinds virtio_pci 9pnet_virtio 9p crc32c_generic crct10dif_generic; do
    for file in $(modprobe -d "$VM_KERNEL" -S "$release" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" { print $2 }'); do
      found=$(basename "$file" .xz)
      if grep -q "^$found" "$1/modules/order"; then continue; fi
      case $file in *.xz) xz -dc "$file" >"$1/modules/$found" ;; *) cp "$file" "$1/modules/$found" ;; esac
      # Both ways to the namespace are disks of their own.
      case $found in
        nvme-core.ko) echo "$found multipath=N" ;;
        brd.ko)       echo "$found rd_nr=1 rd_size=16384" ;;
        *)            echo "$found" ;;
      esac >>"$1/modules/order"
    done
  done
}

run_vm() { # KIND PROGRAM, a script; prints what the machine says
  local dir; dir=$(mktemp -d)
  mkdir -p "$dir/root/bin"
  cp "$(command -v busybox)" "$dir/root/bin/busybox"
  cp "$ROOT/tools/vm/init" "$ROOT/tools/vm/$1" "$dir/root/"
  printf '%s\n' "$2" >"$dir/root/program"
  vm_modules "$dir/root" "$1"
  (cd "$dir/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd"
  timeout "$VM_LIMIT_S" qemu-system-x86_64 -machine "q35,accel=$VM_ACCEL" -cpu max -m 1024 -smp 1 -nodefaults -no-reboot -display none -serial stdio \
    -kernel "$(find "$VM_KERNEL" -name 'vmlinuz*' -print -quit)" -initrd "$dir/initrd" -append "console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on kind=$1" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap </dev/null 2>&1 || say "the virtual machine ended with $?"
  rm -rf "$dir"
}

test_vm() { # KIND
  local out classes disks
  case $1 in
    scsi) disks='/dev/sda /dev/sdb resets' ;;
    nvme) disks='/dev/nvme0n1 /dev/nvme1n1' ;;
    *)    usage_error "test vm: '$1' is no kind of disks: scsi or nvme" ;;
  esac
  need_jdk
  need_vm "$1"
  run_maven -q -pl linux -am -DskipTests test-compile >&2 </dev/null || die "the build failed; see above"
  classes=$ROOT/linux/target/test-classes:$ROOT/linux/target/classes:$ROOT/fuse/target/classes:$ROOT/core/target/classes
  out=$(mktemp)
  say "booting $(basename "$VM_KERNEL"), for up to $VM_LIMIT_S s"
  run_vm "$1" "exec '$JAVA_HOME/bin/java' -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xmx256m --enable-native-access=ALL-UNNAMED -cp '$classes' io.etcfs.linux.scsi.KernelPath $disks" | tee "$out"
  if grep -q '^PASSED' "$out"; then rm -f "$out"; else rm -f "$out"; die "the kernel's way to reservations failed in the virtual machine; see above"; fi
}
