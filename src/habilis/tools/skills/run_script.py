"""`run_script`, which is defined for the code of a run with skills. It runs inside the sandbox, as source text."""


def run_script(path: str, *arguments: object) -> None:
    """Run a script of a skill as `python PATH ARGUMENTS` would; others than Python need a sandbox with processes."""
    import os
    import runpy
    import subprocess
    import sys

    with open(path, 'rb') as file:
        first = file.readline(200).decode(errors='replace')
    words = [path, *map(str, arguments)]
    if not path.endswith('.py') and 'python' not in first:
        if sys.platform == 'wasi':
            msg = f'{path} is not Python, and this sandbox starts no processes: write its work in Python, or tell the '
            raise RuntimeError(msg + "user to choose one that does, such as sandbox='process'")
        program = first[2:].split() if first.startswith('#!') else ['sh']
        command = [*program, *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        print(done.stdout, end='')
        print(done.stderr, end='', file=sys.stderr)
        if done.returncode:
            msg = f'{path} ended with exit code {done.returncode}'
            raise RuntimeError(msg)
        return
    folder = os.path.dirname(os.path.abspath(path))
    before, known, sys.argv = sys.argv, {*sys.modules}, words
    sys.path.insert(0, folder)
    try:
        runpy.run_path(path, run_name='__main__')
    except SystemExit as error:
        if error.code not in (None, 0):
            msg = f'{path} ended with exit code {error.code}'
            raise RuntimeError(msg) from None
    finally:
        sys.argv = before
        sys.path.remove(folder)
        for name in {*sys.modules} - known:  # another skill may have other modules of these names
            if str(getattr(sys.modules[name], '__file__', '')).startswith(folder):
                del sys.modules[name]
