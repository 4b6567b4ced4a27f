"""The command on a machine where no server of models listens."""

import sys

from habilis.cli.main import main
from habilis.models.discovery import discover, discover_all

if __name__ == '__main__':
    for function in (discover, discover_all):
        assert function.__kwdefaults__ is not None
        function.__kwdefaults__['servers'] = ()
    sys.argv[0] = 'habilis'
    main()
