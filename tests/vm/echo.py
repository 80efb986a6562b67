# SPDX-License-Identifier: MIT
"""In the machine under test: one word to whoever connects, from each address of the world."""

import selectors
import socket

PORT = 7007

listener = socket.create_server(("0.0.0.0", PORT), reuse_port=False, backlog=64)
with selectors.DefaultSelector() as selector:
    selector.register(listener, selectors.EVENT_READ)
    while selector.select():
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(5)
            try:
                connection.sendall(f"hello from {connection.getsockname()[0]}\n".encode())
            except OSError:
                pass
