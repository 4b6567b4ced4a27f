"""The `docker` command: which engine answers, without the SDK."""

import shutil
import subprocess

TIMEOUT_SECONDS = 10.0


def find_engine() -> tuple[str, str]:
    """Version of the running engine; if there is none, an empty one and the reason."""
    if shutil.which('docker') is None:
        return '', 'the `docker` command is not installed'
    version, error = run_docker('version', '--format', '{{.Server.Version}}')
    return version, '' if version else f'the `docker` command is installed, but no engine answers ({error})'


def run_docker(*arguments: str) -> tuple[str, str]:
    """Output and error message of a docker command."""
    try:
        done = subprocess.run(
            ['docker', *arguments], capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return '', f'no answer in {TIMEOUT_SECONDS:g} s'
    except OSError as error:
        return '', str(error.strerror)
    error = done.stderr.strip().splitlines()[:1] or ['no error message']
    return (done.stdout.strip() if done.returncode == 0 else ''), error[0]
