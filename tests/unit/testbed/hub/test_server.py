"""The hub as a server: addresses, and one thread that comes and goes."""

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testbed.hub.errors import HubError, RepositoriesFileError
from testbed.hub.server import Hub


def test_a_taken_port_is_an_os_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="address already in use"):
            Hub.from_file().start(port=taken.getsockname()[1])


def test_another_address_can_be_bound() -> None:
    hub = Hub.from_file()
    try:
        assert hub.start(host="127.0.0.2").startswith("http://127.0.0.2:")
    finally:
        hub.stop()


def test_stopping_ends_the_thread() -> None:
    before = set(threading.enumerate())
    with Hub.from_file():
        pass
    assert not {thread for thread in set(threading.enumerate()) - before if thread.name == "hub"}


def test_starting_twice_is_refused(hub: Hub) -> None:
    with pytest.raises(HubError, match="listens already"):
        hub.start()


def test_an_unknown_repository_is_named_with_those_that_exist(hub: Hub) -> None:
    with pytest.raises(HubError, match=r"no repository 'x/y'.*specdec-testbed/tiny-llama"):
        hub.repository("x/y")


def test_a_repository_without_files_names_its_directory(tmp_path: Path) -> None:
    file = tmp_path / "repositories.yaml"
    file.write_text("repositories: [{name: a/b, revisions: [{directory: nowhere, names: [main]}]}]")
    with pytest.raises(RepositoriesFileError, match=r"a/b: directory .*nowhere is missing or empty"):
        Hub.from_file(file)


def test_a_wrong_repositories_file_names_the_field(tmp_path: Path) -> None:
    file = tmp_path / "repositories.yaml"
    file.write_text("repositories: [{name: a/b, revision: []}]")
    with pytest.raises(RepositoriesFileError, match=r"repositories\.0\.revision"):
        Hub.from_file(file)


def test_the_command_serves_until_it_is_told_to_end() -> None:
    command = [sys.executable, "-m", "testbed.hub", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        announced = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert (announced.startswith("hub: http://127.0.0.1:"), process.wait(20)) == (True, 0)
