# `./dev test vm`: a virtual machine whose kernel has disks with reservations. It changes nothing on this machine: the host's files are read only in it. Sourced by ./dev.
# The fencer alone runs in an emulated one (QEMU). Whole nodes would lose their sessions there; they run under a user-mode Linux, a kernel that is a process and runs programs by the host's processor.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

# Emulated: a /dev/kvm that opens need not run anything, and then the machine just stands still.
VM_ACCEL=${VM_ACCEL:-tcg}
# How much slower than here time goes by for whole nodes: they have one processor for all, each call of the kernel is dear, and this machine may be busy.
VM_SLOWER=${VM_SLOWER:-5}
# How often the clock makes its four steps.
VM_ROUNDS=${VM_ROUNDS:-2}
# Has a kernel whose NVMe target has reservations.
VM_NEW_SUITE=trixie-backports

need_vm() { # KIND; sets VM_KERNEL, a directory with the files of one of Debian's kernel packages
  local package packages deb apt=(apt-get) cache=(apt-cache) state=$CACHE/apt-$VM_NEW_SUITE
  need_commands cpio:cpio busybox:busybox-static modprobe:kmod dpkg-deb:dpkg xz:xz-utils iscsistart:open-iscsi
  if [ "$1" = nodes ]; then need_commands gcc:gcc python3:python3; else need_commands qemu-system-x86_64:qemu-system-x86; fi
  mkdir -p "$CACHE"
  if [ "$1" = nvme ]; then
    # With sources and a state of its own, beside this machine's.
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $VM_NEW_SUITE main" >"$state/sources.list"
    apt+=(-o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache")
    cache+=("${apt[@]:1}")
    "${apt[@]}" update -q >&2 || die "the list of packages of Debian's $VM_NEW_SUITE could not be fetched; see above"
  fi
  if [ "$1" = nodes ]; then
    package=user-mode-linux
  else
    package=$("${cache[@]}" depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }') && [ -n "$package" ] || die "no kernel package linux-image-amd64: test vm needs Debian's"
  fi
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
    if [ -e usr/lib/uml ]; then ln -s usr/lib/uml lib; elif [ ! -e lib ]; then ln -s usr/lib lib; fi
    touch complete
  ) 8>"$CACHE/.vm-lock" || die "$package could not be fetched; see above"
}

# The modules that there are, and those that they need, first what others need.
vm_modules() { # DIRECTORY KIND
  local release found module file kinds
  release=$(basename "$VM_KERNEL"/lib/modules/*)
  case $2 in
    scsi)  kinds='target_core_mod iscsi_target_mod iscsi_tcp sd_mod virtio_pci 9pnet_virtio 9p' ;;
    nvme)  kinds='brd nvmet nvme_loop virtio_pci 9pnet_virtio 9p' ;;
    nodes) kinds='target_core_mod iscsi_target_mod iscsi_tcp sd_mod fuse' ;;
  esac
  mkdir -p "$1/modules"
  : >"$1/modules/order"
  depmod -b "$VM_KERNEL" "$release"
  for module in configfs $kinds crc32c_generic crct10dif_generic; do
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
  cp "$ROOT"/tools/vm/* "$dir/root/"
  printf '%s\n' "$2" >"$dir/root/program"
  vm_modules "$dir/root" "$1"
  (cd "$dir/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd"
  case $1 in
    nodes) user_mode_linux "$dir" "loglevel=4 panic=-1 kind=$1" ;;
    *)     emulated "$dir" "console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on kind=$1" ;;
  esac </dev/null 2>&1 || say "the virtual machine ended with $?"
  rm -rf "$dir"
}

emulated() { # DIRECTORY ARGUMENTS OF LINUX
  timeout "$VM_LIMIT_S" qemu-system-x86_64 -machine "q35,accel=$VM_ACCEL" -cpu max -m 1024 -smp 1 -nodefaults -no-reboot -display none -serial stdio \
    -kernel "$(find "$VM_KERNEL" -name 'vmlinuz*' -print -quit)" -initrd "$1/initrd" -append "$2" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap
}

user_mode_linux() { # DIRECTORY ARGUMENTS OF LINUX
  gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$1/slow.so" "$ROOT/tools/vm/slow.c"
  # Its memory is a file that has no name, of a file system in memory.
  # shellcheck disable=SC2086
  TMPDIR=/dev/shm SLOWER=$VM_SLOWER LD_PRELOAD=$1/slow.so timeout "$VM_LIMIT_S" "$VM_KERNEL/usr/bin/linux.uml" mem=3G initrd="$1/initrd" con=null con0=fd:0,fd:1 $2
}

# The kernel's way to reservations, alone.
fencer_program() { # DISK DISK [resets]
  local classes=$ROOT/linux/target/test-classes:$ROOT/linux/target/classes:$ROOT/fuse/target/classes:$ROOT/core/target/classes
  run_maven -q -pl linux -am -DskipTests test-compile >&2 </dev/null || die "the build failed; see above"
  echo "exec '$JAVA_HOME/bin/java' -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xmx256m --enable-native-access=ALL-UNNAMED -cp '$classes' io.etcfs.linux.scsi.KernelPath $*"
}

# Whole nodes.
nodes_program() {
  need_etcd
  build
  # One processor has no use for collectors and compilers that run beside everything. Python not by a shim that would look for it anew.
  echo "export JAVA_HOME='$JAVA_HOME' ETCFS_JAVA_OPTS='-XX:TieredStopAtLevel=1 -XX:-UseG1GC -XX:+UseSerialGC'; exec '$(python3 -c 'import sys; print(sys.executable)')' -B '$ROOT/tools/vm/nodes-program' '$DIST' '$ETCD' '$VM_ROUNDS'"
}

test_vm() { # KIND
  local out program VM_LIMIT_S=${VM_LIMIT_S:-}
  case $1 in scsi|nvme|nodes) ;; *) usage_error "test vm: '$1' is none of scsi, nvme, nodes" ;; esac
  need_jdk
  need_vm "$1"
  if [ "$1" = nodes ]; then VM_LIMIT_S=${VM_LIMIT_S:-3600}; else VM_LIMIT_S=${VM_LIMIT_S:-900}; fi
  case $1 in
    scsi)  program=$(fencer_program /dev/sda /dev/sdb resets) ;;
    nvme)  program=$(fencer_program /dev/nvme0n1 /dev/nvme1n1) ;;
    nodes) program=$(nodes_program) ;;
  esac
  out=$(mktemp)
  say "booting $(basename "$VM_KERNEL"), for up to $VM_LIMIT_S s"
  run_vm "$1" "$program" | tee "$out"
  if grep -q '^PASSED' "$out"; then rm -f "$out"; else rm -f "$out"; die "it failed in the virtual machine; see above"; fi
}
