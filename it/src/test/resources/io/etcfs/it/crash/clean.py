# Removes what a round has left.
import shutil
os.chdir(HERE)
for own in ARGS:
    for path in [own] + ['shared/' + x for x in os.listdir('shared') if x.startswith(own + '-')]:
        for top, dirs, files in os.walk(path, topdown=False):
            for name in files + [d for d in dirs if os.path.islink(os.path.join(top, d))]:
                os.unlink(os.path.join(top, name))
                tick()
            os.rmdir(top)
            tick()
        if os.path.lexists(path):
            os.unlink(path)
            tick()
