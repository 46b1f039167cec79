# This node shows each worker's files as the worker left them, and no others; with the last argument 'remove' they go then.
import hashlib, json
*RESULTS, remove = ARGS
os.chdir(HERE)
wanted, own = {}, {}
for result in RESULTS:
    told = json.load(open(result))
    wanted.update(told['files'])
    own[os.path.basename(result)] = told['blocks']
seen = {}
for d in sorted(os.listdir('.')):
    for n in os.listdir(d):
        data = get(d + '/' + n)
        if n == 'blocks':
            check(hashlib.sha256(data).hexdigest() == own[d.removeprefix('own-')], d, 'blocks differ on', HERE)
        else:
            seen[d + '/' + n] = [len(data), hashlib.sha256(data).hexdigest()]
wrong = [(n, wanted.get(n), seen.get(n)) for n in wanted.keys() | seen.keys() if wanted.get(n) != seen.get(n)]
check(not wrong, len(wrong), 'of', len(wanted), 'differ on', HERE, wrong[:5])
if remove == 'remove':
    for d in os.listdir('.'):
        for n in os.listdir(d):
            os.unlink(d + '/' + n)
            tick()
        os.rmdir(d)
