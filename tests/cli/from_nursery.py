"""`habilis` in a shell, from the nursery: `python -IS from_nursery.py SOCKET ARGUMENTS…`.

Hands its standard streams, folder and environment to the nursery, and exits as the command does.
"""

import json
import os
import socket
import sys

if __name__ == '__main__':
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(sys.argv[1])
    order = {'arguments': sys.argv[2:], 'env': dict(os.environ), 'folder': os.getcwd(), 'terminal': False}
    socket.send_fds(connection, [json.dumps(order).encode()], [0, 1, 2])
    connection.recv(100)  # the number of its process
    code = int(connection.recv(100))
    sys.exit(code if code >= 0 else 128 - code)
