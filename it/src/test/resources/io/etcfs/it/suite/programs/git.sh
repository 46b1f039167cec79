# git: a clone with worktrees, in which both nodes commit at once while it is collected; a bare repository to which both push at once.
. "$(dirname "$0")/prelude.sh"
export GIT_CONFIG_GLOBAL=$SCRATCH/gitconfig GIT_CONFIG_NOSYSTEM=1
cat >"$GIT_CONFIG_GLOBAL" <<'C'
[user]
  name = somebody
  email = somebody@example.com
[init]
  defaultBranch = main
[core]
  fsync = all
  filesRefLockTimeout = 20000
  packedRefsTimeout = 20000
[gc]
  auto = 0
[safe]
  directory = *
C
COMMITS=20

if [ ! -d source ]; then
  git init -q source
  for ((c = 0; c < 15; c++)); do
    for ((i = 0; i < 25; i++)); do
      mkdir -p "source/d$((i % 5))/sub$((c % 3))"
      echo "$c $i $RANDOM" >>"source/d$((i % 5))/sub$((c % 3))/file$i"
    done
    head -c 200000 /dev/urandom >"source/large$((c % 4))"
    ln -sf "large$((c % 4))" source/link
    git -C source add -A && git -C source commit -q -m "commit $c"
  done
  chmod +x source/d1/sub0/file1 && git -C source commit -q -a -m mode
fi

echo "clone on one, read on the other"
git clone -q --no-hardlinks source "$ONE/clone"
silent git -C "$OTHER/clone" status --porcelain
silent git -C "$OTHER/clone" fsck --full --strict --no-progress
same head "$(git -C source rev-parse HEAD)" "$(git -C "$OTHER/clone" rev-parse HEAD)"
silent diff -r --exclude=.git source "$OTHER/clone"

commits() { # TREE WHO
  local i
  for ((i = 0; i < COMMITS; i++)); do
    mkdir -p "$1/$2" && echo "$i" >"$1/$2/file$i" && echo "$2 $i" >>"$1/$2/log"
    git -C "$1" add -A && git -C "$1" commit -q -m "$2 $i" || return 1
  done
}

echo "both commit in a worktree each, while one collects"
git -C "$ONE/clone" worktree add -q -b one "$ONE/tree-one"
git -C "$OTHER/clone" worktree add -q -b other "$OTHER/tree-other"
commits "$ONE/tree-one" one & a=$!
commits "$OTHER/tree-other" other & b=$!
git -C "$ONE/clone" gc -q
both $a $b
for node in "$ONE" "$OTHER"; do
  for who in one other; do
    same "commits of $who" $((16 + COMMITS)) "$(git -C "$node/clone" rev-list --count "$who")"
    same "log of $who" $COMMITS "$(git -C "$node/clone" show "$who:$who/log" | wc -l)"
  done
  silent git -C "$node/clone" fsck --full --strict --no-progress
done
silent git -C "$OTHER/tree-one" status --porcelain
silent git -C "$ONE/tree-other" status --porcelain
git -C "$OTHER/clone" merge -q -m merge one other >/dev/null
silent git -C "$ONE/clone" status --porcelain
same "files after the merge" $((COMMITS * 2 + 2)) "$(cd "$ONE/clone" && find one other -type f | wc -l)"

echo "gc on the other, with all that is loose packed"
git -C "$OTHER/clone" gc -q --aggressive --prune=now
git -C "$ONE/clone" worktree remove "$ONE/tree-one"
silent git -C "$ONE/clone" fsck --full --strict --no-progress
silent git -C "$ONE/clone" status --porcelain
same "loose objects" 0 "$(git -C "$ONE/clone" count-objects | cut -d' ' -f1)"

echo "both push to one bare repository"
git clone -q --bare source "$ONE/hub.git"
pushes() { # NODE WHO
  local i
  git clone -q "$1/hub.git" "$1/work-$2" && git -C "$1/work-$2" checkout -q -b "$2" || return 1
  for ((i = 0; i < COMMITS / 2; i++)); do
    echo "$i" >"$1/work-$2/pushed-$2-$i"
    git -C "$1/work-$2" add -A && git -C "$1/work-$2" commit -q -m "$i" && git -C "$1/work-$2" push -q origin "$2" || return 1
  done
}
pushes "$ONE" one & a=$!
pushes "$OTHER" other & b=$!
both $a $b
for node in "$ONE" "$OTHER"; do
  silent git -C "$node/hub.git" fsck --full --strict --no-progress
  same "branch one" "$(git -C "$node/work-one" rev-parse one)" "$(git -C "$node/hub.git" rev-parse one)"
  same "branch other" "$(git -C "$node/work-other" rev-parse other)" "$(git -C "$node/hub.git" rev-parse other)"
  same "pushed" $((16 + COMMITS / 2)) "$(git -C "$node/hub.git" rev-list --count other)"
done
same "left over" "" "$(find "$ONE" -name '*.lock' -o -name 'tmp_*' -o -name '.fuse_hidden*')"
