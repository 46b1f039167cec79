# What is there: see Tree.read.
OWN, LIST, BLOB = ARGS
os.chdir(HERE)
lines, blob = [], open(BLOB, 'wb')


def entry(path):
    st = os.lstat(path)
    tick()
    data = b''
    if stat.S_ISDIR(st.st_mode):
        kind = 'DIRECTORY'
    elif stat.S_ISLNK(st.st_mode):
        kind, data = 'SYMLINK', os.readlink(path).encode()
    else:
        kind, data = 'FILE', get(path)
        check(st.st_size == len(data), path, 'has size', st.st_size, 'and', len(data), 'bytes')
    blob.write(data)
    lines.append('%s %d %d %d %d %s\n' % (kind, stat.S_IMODE(st.st_mode), st.st_ino, st.st_nlink, len(data), path))
    if kind == 'DIRECTORY':
        for name in sorted(os.listdir(path)):
            tick()
            entry(path + '/' + name)


entry(OWN)
for name in sorted(os.listdir('shared')):
    if name.startswith(OWN + '-'):
        entry('shared/' + name)
blob.close()
open(LIST, 'w').writelines(lines)
