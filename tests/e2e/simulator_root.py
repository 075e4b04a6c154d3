"""The simulator image's root file system, unpacked, and programs started in it by chroot."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import testbed.hub
from testbed.cluster import ports as cluster_ports
from testbed.runtime.build import image_environment, image_layers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MODELS = Path(testbed.hub.__file__).parent / "models" / "specdec-testbed"
_START_SECONDS = 60.0
_ORCHESTRATOR = {"TRTLLM_ORCHESTRATOR": "1", "TRTLLM_ORCHESTRATOR_SPAWN_PROCESSES": "0"}
_MPIRUN = {
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_btl_tcp_if_include": "lo",
}


@dataclass(frozen=True)
class RunningServer:
    """A started server: its ports, its log so far, and the process that everything of it hangs on."""

    ports: tuple[int, int, int]
    log_file: Path
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def ask(self, model: str, **tensors: Any) -> dict[str, Any]:
        return self.post(f"http://127.0.0.1:{self.ports[0]}/v2/models/{model}/generate", tensors)

    @staticmethod
    def post(url: str, document: Mapping[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(url, data=json.dumps(document).encode(), method="POST")  # noqa: S310 - it is ours
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the URL is ours
                return dict(json.load(answer))
        except urllib.error.HTTPError as refused:
            with refused:
                return dict(json.load(refused))

    def stream(self, model: str, **tensors: Any) -> list[dict[str, Any]]:
        url = f"http://127.0.0.1:{self.ports[0]}/v2/models/{model}/generate_stream"
        return [json.loads(event) for event in self.events(url, tensors)]

    @staticmethod
    def events(url: str, document: Mapping[str, Any]) -> list[str]:
        """What a streamed answer says, event by event."""
        request = urllib.request.Request(url, data=json.dumps(document).encode(), method="POST")  # noqa: S310 - it is ours
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - it is ours
            lines = answer.read().decode().splitlines()
        return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]

    def metrics(self, name: str) -> float:
        """A metric's value, summed over its labels."""
        lines = self.exported().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def exported(self) -> str:
        """All of its metrics, as Prometheus reads them."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[2]}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def wait_until_ready(self, model: str) -> None:
        self.wait_until(f"http://127.0.0.1:{self.ports[0]}/v2/models/{model}/ready")

    def wait_until(self, url: str) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - it is ours
                    return
            except OSError:
                time.sleep(0.2)
        raise AssertionError(f"{url} is not ready\n{self.log[-4000:]}")

    def wait_until_not_ready(self, model: str) -> None:
        url = f"http://127.0.0.1:{self.ports[0]}/v2/models/{model}/ready"
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(url, timeout=5).close()
            except urllib.error.HTTPError as refused:
                refused.close()
                return
            time.sleep(0.2)
        raise AssertionError(f"{model} stays ready\n{self.log[-4000:]}")

    def rank_process(self, rank: int) -> int:
        """The host's process id of a rank's tritonserver."""
        wanted = (f"--http-port={self.ports[0]}".encode(), f"shm-region-prefix-name=prefix{rank}_".encode())
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                arguments = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if arguments.startswith(b"tritonserver") and all(word in arguments for word in wanted):
                return int(folder.name)
        raise AssertionError(f"rank {rank} doesn't run")


class SimulatorRoot:
    """A root file system of the image with the tiny models in `/models`."""

    def __init__(self, root: Path, *, cache: Path, models: Path, reference: str) -> None:
        self.root = root
        self._variables = image_environment(reference)
        for layer in image_layers(cache=cache, progress=print, reference=reference):
            subprocess.run(["/usr/bin/tar", "-C", str(root), "-xf", str(layer)], check=True)
        shutil.copytree(models, root / "models")

    def _argv(self, environment: Mapping[str, str], *arguments: str) -> list[str]:
        variables = {**self._variables, "HOME": "/tmp", **environment}  # noqa: S108 - inside of the root
        # However this process ends, what it started ends too.
        isolated = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
        rooted = [*isolated, f"--root={self.root}", "--mount-proc"]
        return [*rooted, "env", "-i", *(f"{name}={value}" for name, value in variables.items()), *arguments]

    def run(self, *arguments: str) -> str:
        done = subprocess.run(self._argv({}, *arguments), check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def build_engine(self, model: str, *flags: str) -> str:
        checkpoint, engine = f"/engines/{model}.checkpoint", f"/engines/{model}"
        convert = "/app/examples/models/core/llama/convert_checkpoint.py"
        paths = ("--checkpoint_dir", checkpoint, "--output_dir", engine)
        self.run("python3", convert, "--model_dir", f"/models/{model}", "--output_dir", checkpoint)
        self.run(
            "trtllm-build", *paths, "--max_batch_size", "4", "--max_seq_len", "128", "--max_input_len", "64", *flags
        )
        return engine

    def place(self, repository: str, template: str, values: Mapping[str, str], *, name: str | None = None) -> Path:
        """Copy a template into a repository, under another name if given, and fill what is known of it."""
        target = self.root / repository / (name or template)
        source = (
            self.root / "app/all_models" / ("llmapi" if values.get("llmapi") else "inflight_batcher_llm") / template
        )
        shutil.copytree(source, target, dirs_exist_ok=True)
        config = target / "config.pbtxt"
        filled = re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], match[0]), config.read_text())
        config.write_text(filled.replace(f'name: "{template}"', f'name: "{name or template}"', 1))
        return target

    @contextmanager
    def serving(
        self,
        repository: str,
        *,
        ranks: int = 0,
        environment: Mapping[str, str] | None = None,
        auto_complete: bool = False,
        arguments: Sequence[str] = (),
    ) -> Iterator[RunningServer]:
        """Start tritonserver, by mpirun with so many ranks when there are any."""
        ports = free_ports()
        command = ["mpirun", "--allow-run-as-root"] if ranks else []
        for rank in range(ranks or 1):
            command += ["-n", "1"] if ranks else []
            command += _rank_arguments(repository, ports, rank)
            command += [":"] if ranks else []
        if auto_complete:
            command.remove("--disable-auto-complete-config")
        command += arguments
        variables = {**(_ORCHESTRATOR | _MPIRUN if ranks else {}), **(environment or {})}
        with self.running(repository, ports, command, environment=variables) as server:
            yield server

    @contextmanager
    def running(
        self, name: str, ports: tuple[int, int, int], command: Sequence[str], *, environment: Mapping[str, str]
    ) -> Iterator[RunningServer]:
        """Run a program that serves on these ports; its log is named after it."""
        log_file = self.root / f"{name}.{ports[0]}.log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                self._argv(environment, *command), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        try:
            yield RunningServer(ports, log_file, process)
        finally:
            process.kill()  # unshare takes its whole process namespace with it, and heeds nothing less
            process.wait(timeout=30)


def _rank_arguments(repository: str, ports: tuple[int, int, int], rank: int) -> list[str]:
    http, grpc, metrics = (str(port) for port in ports)
    arguments = ["tritonserver", f"--model-repository=/{repository}", f"--grpc-port={grpc}", f"--http-port={http}"]
    arguments += [f"--metrics-port={metrics}"]
    if rank:
        arguments += ["--model-control-mode=explicit", "--load-model=tensorrt_llm", "--load-model=tensorrt_llm_draft"]
    prefix = f"--backend-config=python,shm-region-prefix-name=prefix{rank}_"
    return [*arguments, "--disable-auto-complete-config", prefix]


def free_ports() -> tuple[int, int, int]:
    """Ports for HTTP, gRPC and metrics that nothing on this machine listens on."""
    first, second, third = cluster_ports.free_ports(3, address="0.0.0.0")  # noqa: S104 - where Triton listens
    return first, second, third
