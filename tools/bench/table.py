#!/usr/bin/env python3
"""Prints the results of several runs side by side: table.py RESULT.json [RESULT.json...]

Each file ends with one JSON object of numbers and a `label`. The last column divides the last run by the first."""
import json
import sys


def read(path):
    with open(path, encoding='utf-8') as f:
        return json.loads(f.read().strip().splitlines()[-1])


def main(paths):
    runs = [read(path) for path in paths]
    names = [str(run.get('label', '?')) for run in runs]
    common = [f'{key} {runs[0][key]}' for key in ('files', 'mib') if key in runs[0]]
    mounts = [f"{name} {run['mounts']} mount(s)" for name, run in zip(names, runs) if 'mounts' in run]
    print(', '.join(common + mounts))
    keys = list(dict.fromkeys(key for run in runs for key in run if isinstance(run[key], (int, float))
                              and key not in ('files', 'mib', 'mounts')))
    rows = [[''] + names + ['ratio']]
    for key in keys:
        values = [run.get(key) for run in runs]
        first, last = values[0], values[-1]
        both = all(isinstance(v, (int, float)) for v in (first, last)) and first
        rows.append([key] + ['-' if v is None else str(v) for v in values] + [f'{last / first:.2f}' if both else '-'])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print('  '.join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]).rstrip())
    for name, run in zip(names, runs):
        for key in run:
            if key.endswith('_error'):
                print(f'{name}: {key[:-6]} failed: {run[key]}')


if __name__ == '__main__':
    if len(sys.argv) < 2 or sys.argv[1] in ('-h', '--help'):
        print(__doc__)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    main(sys.argv[1:])
