# rsync -aHAX: there, to the other node, and back; the second time nothing is to be done, wherever it runs.
. "$(dirname "$0")/prelude.sh"
if [ ! -d rsync-specimen ]; then
  make_specimen "$SCRATCH/rsync-specimen"
  ln rsync-specimen/fifo rsync-specimen/empty/fifo
fi
describe rsync-specimen >rsync-expected

check() { # WHAT DIRECTORY
  describe "$2" >rsync-found
  same_files "$1" rsync-expected rsync-found
}
nothing_to_do() { # FROM TO
  silent rsync -aHAXS --modify-window=-1 --delete -i "$1/" "$2/"
  silent rsync -aHAX --modify-window=-1 --delete -in --checksum "$1/" "$2/"
}

rsync -aHAXS rsync-specimen/ "$ONE/copy/"
check "the copy as the other sees it" "$OTHER/copy"
check "the copy" "$ONE/copy"
nothing_to_do rsync-specimen "$ONE/copy"
nothing_to_do rsync-specimen "$OTHER/copy"
blocks=$(stat -c %b rsync-specimen/sparse)
[ "$(stat -c %b "$OTHER/copy/sparse")" -le $((blocks + 64)) ] || fail "sparse has $(stat -c %b "$OTHER/copy/sparse") blocks, not $blocks"

echo "from the other node, within the filesystem and back"
rsync -aHAXS "$OTHER/copy/" "$OTHER/again/"
check "the copy of the copy" "$ONE/again"
nothing_to_do "$ONE/copy" "$ONE/again"
rm -rf rsync-back
rsync -aHAXS "$ONE/again/" rsync-back/
check "back" rsync-back

echo "changes are carried over, and no more"
rsync -aHAXS rsync-specimen/ rsync-changed/
echo more >>rsync-changed/many/file20 && rm rsync-changed/many/file21 && chmod 600 rsync-changed/many/file22 && setfattr -x user.empty rsync-changed/many/file5
sent=$(rsync -aHAXS --modify-window=-1 --delete -i rsync-changed/ "$OTHER/copy/")
same "lines for the changes" 5 "$(wc -l <<<"$sent")"
# It forgets the time of a directory that it has deleted in.
rsync -aHAXS --modify-window=-1 rsync-changed/ "$OTHER/copy/"
nothing_to_do rsync-changed "$ONE/copy"
describe rsync-changed >rsync-expected
check "after the changes" "$ONE/copy"
rm -rf rsync-changed rsync-back
