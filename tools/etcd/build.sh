#!/bin/sh
# Builds the etcd and etcdctl that tests run against into DEST_DIR, from the versions pinned in go.mod.
# Does nothing if both are there already.
set -eu
if [ $# -ne 1 ]; then
    echo "usage: $0 DEST_DIR" >&2
    exit 2
fi
dest=$1
[ -x "$dest/etcd" ] && [ -x "$dest/etcdctl" ] && exit 0
command -v go >/dev/null || { echo "$0: go is needed to build etcd (or put etcd and etcdctl into $dest)" >&2; exit 1; }
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
cd "$(dirname "$0")"
work=$(mktemp -d "$dest/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
for part in server:etcd etcdctl:etcdctl; do
    CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -ldflags='-s -w' -o "$work/${part#*:}" "go.etcd.io/etcd/${part%%:*}/v3"
done
# Renamed in at the end, so that a build that was cut short leaves nothing that looks finished.
mv "$work/etcdctl" "$dest/etcdctl"
mv "$work/etcd" "$dest/etcd"
