# With DEV_NETWORK=namespaces each node has a network namespace of its own, with one link to etcd and one to the iSCSI target, which `./dev cut` takes down and
# `./dev join` brings up again. Sourced by ./dev.
# STATE/network: the instance's number N. Bridges on the host etcfsNe (10.213.N.1, etcd) and etcfsNs (10.214.N.1, target); node i has the last byte 10 + i.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

wants_namespaces() { # what the instance was made with counts
  [ -e "$STATE/network" ] || { [ "${DEV_NETWORK:-host}" = namespaces ] && [ ! -e "$STATE/formatted" ]; }
}

check_network_kind() {
  case ${DEV_NETWORK:-host} in
    host) ;;
    namespaces) need_commands ip:iproute2 nsenter:util-linux ;;
    *) usage_error "DEV_NETWORK '${DEV_NETWORK:-}': host or namespaces" ;;
  esac
}

# Where etcd and the target listen, beside nothing else.
etcd_host() { if [ -e "$STATE/network" ]; then echo "10.213.$(read_line "$STATE/network").1"; else echo 127.0.0.1; fi; }
storage_host() { if [ -e "$STATE/network" ]; then echo "10.214.$(read_line "$STATE/network").1"; else echo 127.0.0.1; fi; }

bridge() { printf 'etcfs%s%s\n' "$(read_line "$STATE/network")" "$1"; } # e or s
host_end() { printf 'ef%s%s%s\n' "$(read_line "$STATE/network")" "$1" "$2"; } # e or s, NODE
namespace() { printf 'etcfs%s-%s\n' "$(read_line "$STATE/network")" "$1"; } # NODE

make_network() {
  local n
  if [ ! -e "$STATE/network" ]; then
    # Making the first bridge takes the number.
    for ((n = 1; n < 255; n++)); do
      if ip link add "etcfs${n}e" type bridge 2>/dev/null; then printf '%s\n' "$n" >"$STATE/network"; break; fi
    done
    [ -e "$STATE/network" ] || die "no bridge can be made: $(ip link add etcfs255e type bridge 2>&1)"
  fi
  make_bridge e 213
  make_bridge s 214
}

make_bridge() { # e|s SECOND_BYTE; also after a reboot
  local name; name=$(bridge "$1")
  [ -e "/sys/class/net/$name" ] || ip link add "$name" type bridge
  ip addr replace "10.$2.$(read_line "$STATE/network").1/24" dev "$name"
  ip link set "$name" up
}

make_namespace() { # NODE
  local name
  name=$(namespace "$1")
  if [ ! -e "/run/netns/$name" ]; then
    ip netns add "$name"
    ip -n "$name" link set lo up
  fi
  make_link "$1" e 213 etcd
  make_link "$1" s 214 storage
}

make_link() { # NODE e|s SECOND_BYTE NAME_INSIDE
  local end; end=$(host_end "$2" "$1")
  if [ ! -e "/sys/class/net/$end" ]; then
    ip link add "$end" type veth peer name "$4" netns "$(namespace "$1")"
    ip -n "$(namespace "$1")" addr add "10.$3.$(read_line "$STATE/network").$((10 + ${1#n}))/24" dev "$4"
    ip -n "$(namespace "$1")" link set "$4" up
    ip link set "$end" master "$(bridge "$2")"
  fi
  ip link set "$end" up
}

# A command as the node would run it. Mounts are the host's: only the network is another one.
in_network() { # NODE COMMAND...
  local node=$1; shift
  if [ ! -e "$STATE/network" ]; then "$@"; return; fi
  make_namespace "$node"
  nsenter --net="/run/netns/$(namespace "$node")" "$@"
}

link_command() { # up|down NODE etcd|storage|all
  local node=${2:-} links kind
  [ $# -ge 2 ] && [ $# -le 3 ] || usage_error "cut and join take a node, then etcd, storage or all: ./dev cut n1 etcd"
  check_node_name "$node"
  case ${3:-all} in etcd) links=e ;; storage) links=s ;; all) links='e s' ;; *) usage_error "'$3' is none of etcd, storage, all" ;; esac
  need_root
  need_node "$node"
  [ -e "$STATE/network" ] || die "this instance has no networks of its own; DEV_NETWORK=namespaces ./dev up makes one that has"
  for kind in $links; do ip link set "$(host_end "$kind" "$node")" "$1"; done
}

stop_network() {
  local name node kind
  [ -e "$STATE/network" ] || return 0
  for name in /run/netns/"$(namespace n)"*; do
    [ -e "$name" ] || continue
    node=n${name##*-n}
    # The ends inside go with the namespace, once nobody is in it.
    for kind in e s; do ip link del "$(host_end "$kind" "$node")" 2>/dev/null || true; done
    ip netns del "${name##*/}" || say "WARNING: the network namespace ${name##*/} is left"
  done
  for kind in e s; do ip link del "$(bridge "$kind")" 2>/dev/null || true; done
  rm -f "$STATE/network"
}
