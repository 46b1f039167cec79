# tar with ACLs, extended attributes and holes: there and back, packed by one node and unpacked by the other.
. "$(dirname "$0")/prelude.sh"
[ -d tar-specimen ] || make_specimen "$SCRATCH/tar-specimen"
describe tar-specimen >tar-expected
keep=(--acls --xattrs '--xattrs-include=*' --sparse --numeric-owner)

check() { # WHAT DIRECTORY
  describe "$2" >tar-found
  same_files "$1" tar-expected tar-found
}

tar "${keep[@]}" -C tar-specimen -cf "$ONE/archive.tar" .
mkdir "$OTHER/unpacked"
tar "${keep[@]}" -C "$OTHER/unpacked" -xpf "$OTHER/archive.tar"
check "unpacked by the other" "$ONE/unpacked"
silent tar "${keep[@]}" -C "$ONE/unpacked" -df "$ONE/archive.tar"
silent tar "${keep[@]}" -C "$OTHER/unpacked" -df "$OTHER/archive.tar"
blocks=$(stat -c %b tar-specimen/sparse)
[ "$(stat -c %b "$ONE/unpacked/sparse")" -le $((blocks + 64)) ] || fail "sparse has $(stat -c %b "$ONE/unpacked/sparse") blocks, not $blocks"

echo "back"
rm -rf tar-back && mkdir tar-back
tar "${keep[@]}" -C "$ONE/unpacked" -czf tar-back.tar.gz .
tar "${keep[@]}" -C tar-back -xpzf tar-back.tar.gz
check "back" tar-back
rm -rf tar-back tar-back.tar.gz
