# Both nodes show what the programs were told, and the same.
import json
seen = []
for root in HERE, THERE:
    os.chdir(root)
    now = {}
    log = get('shared/log').decode()
    now['shared/log'] = log
    at = [log[i:i + 15] for i in range(0, len(log), 15)]
    wanted = {}
    for result in ARGS:
        told = json.load(open(result))
        for name, allowed in told['may'].items():
            try:
                now[name] = get(name).decode()
            except FileNotFoundError:
                now[name] = None
            tick()
            check(now[name] in allowed, name, 'on', root, 'is', (now[name] or str(now[name]))[:60], 'allowed', [a and a[:60] for a in allowed])
        mine = [line for line in at if line in dict(told['lines'])]
        sure = [line for line, how in told['lines'] if how == 'sure']
        check(len(set(mine)) == len(mine), 'a line is there twice')
        check(mine == sorted(mine), 'lines of one node are out of order')
        check(not set(sure) - set(mine), 'lines lost:', *sorted(set(sure) - set(mine))[:5])
        check(not [line for line, how in told['lines'] if how == 'no' and line in set(mine)], 'a line that was refused is there')
        wanted.update(told['may'])
        names = told['may'].keys()
        for d in {n.split('/')[0] for n in names} - {'shared'}:
            check(not set(d + '/' + x for x in os.listdir(d)) - set(names), 'more names than were made in', d)
            tick()
    check(sum(len(json.load(open(r))['lines']) for r in ARGS) >= len(at), 'more lines than were written')
    listed = sorted(os.listdir('shared'))
    check(listed == sorted(n[7:] for n in now if n.startswith('shared/') and now[n] is not None), 'names in shared on', root)
    seen.append(now)
check(seen[0] == seen[1], 'the nodes differ')
