# SPDX-License-Identifier: MIT
"""
A registry of npm packages on a loopback address, for as long as a test needs it: the records and archives that npm
asks for (https://github.com/npm/registry, package metadata), made from what the test says.
"""

import base64
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
import urllib.parse


def archive(files):
    """
    A package's .tgz. files: {path: text or bytes, or (mode, content), or a TarInfo with a name of its own}.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, content in files.items():
            mode = 0o644
            if isinstance(content, tarfile.TarInfo):
                content.name = path
                tar.addfile(content)
                continue
            if isinstance(content, tuple):
                mode, content = content
            data = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(path if path.startswith(("/", "..")) else f"package/{path}")
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=0)


class Registry:
    def __init__(self):
        self.packages = {}
        self.archives = {}
        self.requests = []
        self.held = threading.Event()        # set: somebody waits for an archive that never comes
        self.hold = None                     # the archive that never comes
        self.release = threading.Event()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):                # pylint: disable=invalid-name
                registry.answer(self)

            def log_message(self, *_):       # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        path = urllib.parse.unquote(request.path).lstrip("/")
        self.requests.append(path)
        if path == self.hold:
            self.held.set()
            self.release.wait(60)
        if path in self.archives:
            status, kind, body = 200, "application/octet-stream", self.archives[path]
        elif path in self.packages:
            status, kind, body = 200, "application/json", json.dumps(self.packages[path]).encode()
        else:
            status, kind, body = 404, "application/json", b'{"error":"Not found"}'
        try:
            request.send_response(status)
            request.send_header("Content-Type", kind)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
        except OSError:
            pass

    def publish(self, name, version, files, digest=None, alias=None, **record):
        """
        One version. digest: instead of the right one; "" for none. alias: the name of the package that it is a version
        of, where that differs (its archive is then named after `name`).
        """
        owner = alias or name
        record = {"name": owner, "version": version, **record}
        data = archive({"package.json": json.dumps(record), **files})
        place = f"{name}/-/{name.split('/')[-1]}-{version}.tgz"
        right = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        dist = {"tarball": self.address + place, "shasum": hashlib.sha1(data).hexdigest()}
        if digest != "":
            dist["integrity"] = digest or right
        self.archives[place] = data
        package = self.packages.setdefault(owner, {"name": owner, "dist-tags": {}, "versions": {}})
        if not alias:
            package["dist-tags"]["latest"] = version
        package["versions"][version] = {**record, "dist": dist}
        return place
