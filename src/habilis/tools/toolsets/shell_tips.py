"""One useful line about a command that failed."""

import re

_NOT_FOUND = re.compile(r'(?:line \d+: |sh: \d+: |: )?(?P<name>[^\s:]+): (?:command )?not found')
_NO_MODULE = re.compile(r"No module named '?(?P<name>[\w.]+)")
_MISSING = re.compile(
    r"['‘]([^'‘’\n]+)['’]: (?:\[Errno 2\] )?No such file or directory|(?:^|: )([^:'‘’\n]+): No such file or directory",
    re.MULTILINE,
)

_INSTEAD = {
    'pip': 'packages are chosen by the caller: packages=[…]',
    'pip3': 'packages are chosen by the caller: packages=[…]',
    'python': 'try python3, or run the code without bash',
    'rg': 'try grep -rn',
    'curl': 'use Python: urllib.request, if the network is allowed',
    'wget': 'use Python: urllib.request, if the network is allowed',
    'sudo': 'there are no other users here: leave out sudo',
    'apt': 'nothing can be installed here',
    'apt-get': 'nothing can be installed here',
}


def tip_for(command: str, code: int, stderr: str, *, write_advice: str = '') -> str:
    """What to do about a command that failed; empty if nothing is known."""
    if code == 127 and (found := _NOT_FOUND.search(stderr)):
        name = found['name']
        return f'{name} is not installed here; {_INSTEAD.get(name, "use another command, or Python")}'
    if missing := _NO_MODULE.search(stderr):
        return f'the package {missing["name"].partition(".")[0]} is not installed here'
    if 'Argument list too long' in stderr:
        return 'put the text into a file first, with write_file or in Python'
    if 'Permission denied' in stderr:
        return 'a script runs with `bash FILE`, or after `chmod +x FILE`; only the workspace and /tmp can be written'
    if 'Read-only file system' in stderr:
        return write_advice or 'only the workspace and /tmp can be written'
    if absent := _MISSING.search(stderr):
        name = absent[1] or absent[2]
        return f'there is no {name} here: look with ls; paths start in the folder that the command runs in'
    if code == 137:
        return 'it was killed, perhaps because of its memory: work on less at a time'
    if code == 2 and re.search('unexpected (EOF|end of file)', stderr):
        return 'a quote, a bracket or a here-document is not closed'
    if command.split()[:1] in (['vi'], ['vim'], ['nano'], ['less'], ['top']):
        return 'there is no terminal: interactive programs do not work'
    return ''
