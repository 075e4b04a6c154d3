"""The hub's HTTP interface: the part of the public hub's that downloads need."""

from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from testbed.hub import access, transfer
from testbed.hub.errors import Refusal
from testbed.hub.repositories import Catalogue, Commit, Repository, StoredFile


@dataclass
class Traffic:
    """What was asked for.

    Attributes:
        requests: how many per (method, path).
        ranges: path and first byte of each GET, in their order.
    """

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    ranges: list[tuple[str, int]] = field(default_factory=list)

    def count(self, method: str, part: str) -> int:
        """Return how many requests of a method had `part` in their path."""
        return sum(number for (verb, path), number in self.requests.items() if verb == method and part in path)


def build(catalogue: Catalogue, faults: transfer.Faults, traffic: Traffic) -> web.Application:
    """Return the application that serves a catalogue."""
    application = web.Application(middlewares=[_counting(traffic), _refusing])
    application.add_routes(_Routes(catalogue, faults).table())
    return application


def _counting(traffic: Traffic) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        traffic.requests[request.method, request.path] += 1
        if request.method == "GET":
            traffic.ranges.append((request.path, request.http_range.start or 0))
        return await handler(request)

    return middleware


@web.middleware
async def _refusing(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refusal as refusal:
        headers = {"X-Error-Message": refusal.message}
        if refusal.code:
            headers["X-Error-Code"] = refusal.code
        return web.json_response({"error": refusal.message}, status=refusal.status, headers=headers)


class _Routes:
    def __init__(self, catalogue: Catalogue, faults: transfer.Faults) -> None:
        self._catalogue = catalogue
        self._faults = faults

    def table(self) -> list[web.RouteDef]:
        # Every repository may be asked for as a model and as a data set.
        return [
            web.get("/api/whoami-v2", self._whoami),
            *self._repository_table(api="/api/models", files=""),
            *self._repository_table(api="/api/datasets", files="/datasets"),
        ]

    def _repository_table(self, *, api: str, files: str) -> list[web.RouteDef]:
        repository = "/{organisation}/{name}"
        return [
            web.get(api + repository, self._information),
            web.get(api + repository + "/revision/{revision}", self._information),
            web.get(api + repository + "/tree/{revision}", self._tree),
            web.get(api + repository + "/refs", self._references),
            web.get(files + repository + "/resolve/{revision}/{path:.+}", self._resolve),
        ]

    async def _whoami(self, request: web.Request) -> web.StreamResponse:
        user = self._user(request)
        if user is None:
            raise Refusal(HTTPStatus.UNAUTHORIZED, access.INVALID_CREDENTIALS)
        token = {"type": "access_token", "accessToken": {"displayName": user, "role": "read"}}
        return web.json_response({"type": "user", "name": user, "orgs": [], "auth": token})

    async def _information(self, request: web.Request) -> web.StreamResponse:
        repository = self._repository(request)
        commit = repository.commit(request.match_info.get("revision", "main"))
        return web.json_response(_described(repository, commit))

    async def _tree(self, request: web.Request) -> web.StreamResponse:
        commit = self._repository(request).commit(request.match_info["revision"])
        return web.json_response([_entry(file) for file in commit.files.values()])

    async def _references(self, request: web.Request) -> web.StreamResponse:
        names = self._repository(request).names
        branches = [_reference("heads", name, commit) for name, commit in names.items() if name == "main"]
        tags = [_reference("tags", name, commit) for name, commit in names.items() if name != "main"]
        return web.json_response({"branches": branches, "tags": tags, "converts": []})

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        repository = self._repository(request)
        access.check_files(repository, self._user(request))
        commit = repository.commit(request.match_info["revision"])
        return await transfer.send(request, commit, commit.file(request.match_info["path"]), self._faults)

    def _user(self, request: web.Request) -> str | None:
        return access.identify(self._catalogue, request.headers.get("Authorization"))

    def _repository(self, request: web.Request) -> Repository:
        name = f"{request.match_info['organisation']}/{request.match_info['name']}"
        return access.find(self._catalogue, name, self._user(request))


def _described(repository: Repository, commit: Commit) -> dict[str, object]:
    return {
        "_id": commit.id[:24],
        "id": repository.name,
        "modelId": repository.name,
        "author": repository.name.partition("/")[0],
        "sha": commit.id,
        "private": False,
        "gated": "manual" if repository.gated else False,
        "disabled": False,
        "tags": ["specdec-testbed"],
        "downloads": 0,
        "likes": 0,
        "siblings": [{"rfilename": path} for path in commit.files],
    }


def _entry(file: StoredFile) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "oid": file.blob_id, "size": file.size, "path": file.path}
    if file.sha256 is not None:
        entry["lfs"] = {"oid": file.sha256, "size": file.size, "pointerSize": 134}
    return entry


def _reference(kind: str, name: str, commit: str) -> dict[str, str]:
    return {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": commit}
