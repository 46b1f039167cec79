# For programs that run commands. A command makes no ticks: it has a time limit of its own.
LIMIT_S = 900


def sh(command, cwd=None, code=0):
    """Runs a shell command, which must end with that code; what it wrote to standard output."""
    idle()
    begin = time.monotonic()
    p = subprocess.run(['bash', '-c', command], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace', timeout=LIMIT_S)
    busy()
    print('%.1f s: %s' % (time.monotonic() - begin, command), flush=True)
    check(p.returncode == code, command, 'ended with', p.returncode, p.stdout[-2000:], p.stderr[-2000:])
    return p.stdout


