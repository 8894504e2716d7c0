"""A Dask cluster as a platform: a worker is a host, each of its threads a processor.

Where all data are files of a shared directory there is one host: what a worker has made stays there
when it is gone. Unless tasks ask for cores or amounts, which each worker has its own of.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

import dask.config
import numpy as np
from distributed import Client
from distributed.security import Security

from foreplan.errors import ForeplanError, InputError
from foreplan.executors.dask.messages import Message, Worker, unpack
from foreplan.executors.dask.tasks import (
    Announcer,
    Reporter,
    restore_cluster,
    stop_commands,
    tell_workers,
)
from foreplan.model.platform import Link, Platform, Processor
from foreplan.model.resources import Host
from foreplan.quantities import duration

LINK = Link(time_per_unit=1e-8, startup=1e-3)  # 100 MB/s
SHARED = "shared"
_TOGETHER = 0.001  # seconds; what is told to the scheduler within it travels together
_PROBED_IN = 2.0  # seconds until a scheduler must have answered to TLS
_FILES = tuple(f"distributed.comm.tls.{key}" for key in ("ca-file", "client.cert", "client.key"))
_DISMISSED_IN = 5.0  # seconds until a worker that does not answer is left alone
AT_ONCE = Link(time_per_unit=0.0)  # between workers that see one directory


class Cluster:
    """The connection to a cluster, and which of its workers are which processors."""

    def __init__(
        self,
        client: Client | str,
        name: str,
        hear: Callable[[list[Message]], None],
        platform: Platform | None,
        shared: bool,
        patience: float,
        one_host: bool | None = None,  # else one for each worker
    ) -> None:
        self.name = name
        self.owned = isinstance(client, str)
        self.client: Any = client
        if isinstance(client, str):
            self.client = connect(client, patience)
        self.address: str = self.client.scheduler.address
        self._shared = shared if one_host is None else one_host
        network = AT_ONCE if shared else LINK
        self._addresses: dict[int, str] = {}  # of all workers that were ever there
        self.processors: dict[str, list[int]] = {}  # of the workers that are there
        self._machines: dict[int, str] = {}
        self._stream = self.client.scheduler_comm
        self._interval: Any = None  # of the program's own client
        try:
            workers = self._start(hear, patience)
            self.platform = platform or _platform(workers, self._shared, network)
            if not self._shared:
                hosts = self.platform.host.tolist()
                names = self.platform.host_names
                self._addresses = {p: names[h] for p, h in enumerate(hosts)}
            for address, worker in workers.items():
                self.join(address, worker)
        except BaseException:
            self.close()
            raise

    def _start(self, hear: Callable[[list[Message]], None], timeout: float) -> dict[str, Worker]:
        client = self.client
        client.subscribe_topic(self.name, lambda event: hear(unpack(event[1])))
        if hasattr(self._stream, "interval"):
            # what is told within 10 ms would travel together, and a worker stand idle so long
            self._interval = self._stream.interval
            self._stream.interval = min(self._interval, _TOGETHER)
        try:
            workers: dict[str, Worker] = client.sync(self._install, timeout)
        except TimeoutError:
            raise _no_worker(client, timeout) from None
        except Exception as error:
            raise _unable(self.address, error) from None
        return workers

    async def _install(self, timeout: float) -> dict[str, Worker]:
        """Ask for all that is needed at once: each question travels there and back."""
        client = self.client
        await asyncio.gather(
            client.wait_for_workers(1, timeout=timeout),
            client.register_plugin(Announcer(self.name, client.id), name=self.name),
            client.register_plugin(Reporter(self.name), name=self.name),
        )
        found = await client.run_on_scheduler(tell_workers, self.name)
        return {address: Worker(*fields) for address, fields in found.items()}

    def check(self, advice: str) -> None:
        """Raise an error if the scheduler is lost: all that it knew is lost with it.

        A client that was connected again is as bad: Dask has dropped all its tasks.
        """
        if self.client.status != "running" or self.client.scheduler_comm is not self._stream:
            raise ForeplanError(
                f"lost the Dask scheduler at {self.address}: start it again, and {advice}"
            )

    def do_later(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have the client's own loop do something."""
        self.client.loop.add_callback(work)

    def release(self, futures: list[Any]) -> None:
        """Let go of futures, in the loop, where each costs least."""
        if not futures:
            return

        async def release() -> None:
            for future in futures:
                future.release()

        self.do_later(release)

    def ask_scheduler(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        then: Callable[[Any], None] = lambda answer: None,
    ) -> None:
        """Have the scheduler call this; `then` hears what it answers, None if there is no answer.

        That is in the client's own loop, and so in another thread.
        """

        async def ask() -> None:
            answer = None
            try:
                with contextlib.suppress(OSError):  # no scheduler: that is noticed elsewhere
                    answer = await self.client.run_on_scheduler(function, *arguments)
            finally:
                then(answer)

        self.do_later(ask)

    def look_for_workers(self) -> None:
        """Ask who is there; the answer is heard in turn with all else."""
        self.ask_scheduler(tell_workers, self.name)

    def stop_commands(self, address: str, keys: list[str], grace: float) -> None:
        """Have a worker end the processes of these tasks."""

        async def ask() -> None:
            with contextlib.suppress(OSError, KeyError):
                await self.client.run(
                    stop_commands, self.name, keys, grace, workers=[address], on_error="ignore"
                )

        self.do_later(ask)

    def address_of(self, processor: int) -> str:
        """The worker that a processor is a thread of."""
        return self._addresses.get(processor, "")

    def is_here(self, processor: int) -> bool:
        """Whether the processor can be used now."""
        return processor in self.processors.get(self.address_of(processor), ())

    def machine(self, processor: int) -> str:
        """A processor's name in this cluster and in others."""
        return self._machines.get(processor) or self.platform.processor_names[processor]

    def join(self, address: str, worker: Worker) -> list[int]:
        """A worker is there: its processors, which are the old ones if it has come back."""
        if address in self.processors:
            return []
        name, threads, place, *_ = worker
        known = self._known(address, worker)
        if known and not self._shared:
            self._note_amounts(int(self.platform.host[known[0]]), worker)
        if len(known) < threads:
            n = self.platform.n_processors
            wanted = _named(worker)[len(known) :]
            taken = set(self.platform.processor_names)
            new = [w if w not in taken else f"{w}@{address}" for w in wanted]
            host = Host(SHARED) if self._shared else Host(address, worker.amounts)
            self.platform = extended(self.platform, host, new)
            known += range(n, n + len(new))
        here = self.processors[address] = known[:threads]
        self._addresses.update(dict.fromkeys(known, address))
        machine = _machine_name(address, name, place, set(self._machines.values()))
        self._machines.update(dict.fromkeys(here, machine))
        return here

    def _note_amounts(self, host: int, worker: Worker) -> None:
        """Note the amounts of a worker that came back; if all workers are one host, it has none."""
        hosts = list(self.platform.hosts)
        if hosts and hosts[host].amounts != worker.amounts:
            hosts[host] = replace(hosts[host], amounts=worker.amounts)
            self.platform = replace(self.platform, hosts=tuple(hosts))

    def _known(self, address: str, worker: Worker) -> list[int]:
        """The processors of a worker that was there before; nothing in its memory counts."""
        known = [p for p, other in self._addresses.items() if other == address]
        if known:
            return known
        names = enumerate(self.platform.processor_names)
        unseen = {name: p for p, name in names if p not in self._addresses}
        return [unseen[name] for name in _named(worker) if name in unseen]

    def leave(self, address: str) -> list[int]:
        """A worker is gone: the processors that are gone with it."""
        return self.processors.pop(address, [])

    def close(self) -> None:
        """Leave the cluster as it was found."""
        client = self.client
        if client.status == "running":
            with contextlib.suppress(Exception):  # the scheduler may die at this moment, too
                client.unsubscribe_topic(self.name)
                client._event_handlers.pop(self.name)  # Dask would keep it
                client.sync(self._dismiss, callback_timeout=2 * _DISMISSED_IN)
        if self._interval is not None:
            self._stream.interval = self._interval
        if self.owned:
            client.close(timeout=5)

    async def _dismiss(self) -> None:
        """Have all undone; a worker that stands still does so later: nobody waits for it."""
        restored = self.client.run_on_scheduler(restore_cluster, self.name)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(restored, _DISMISSED_IN)


def look_at_cluster(
    client: Client | str, patience: float = 15.0
) -> tuple[Platform, tuple[str, ...]]:
    """The processors that a run there would have, and the machine of each; nothing is changed."""
    found: Any = connect(client, patience) if isinstance(client, str) else client
    try:
        _wait_for_workers(found, patience)
        try:
            told = found.run_on_scheduler(tell_workers, "foreplan-look")
            workers = {address: Worker(*fields) for address, fields in told.items()}
        except Exception as error:
            raise _unable(found.scheduler.address, error) from None
    finally:
        if isinstance(client, str):
            found.close(timeout=5)
    machines: list[str] = []
    for address, (name, threads, place, *_) in workers.items():
        machines += [_machine_name(address, name, place, set(machines))] * threads
    return _platform(workers, shared=False, network=LINK), tuple(machines)


def _wait_for_workers(client: Any, patience: float) -> None:
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        raise _no_worker(client, patience) from None


def _no_worker(client: Any, patience: float) -> InputError:
    return InputError(
        f"no worker has come to the Dask scheduler at {client.scheduler.address} in "
        f"{duration(patience)}: start one with `dask worker`"
    )


def _unable(address: str, error: Exception) -> InputError:
    return InputError(
        f"the Dask cluster at {address} cannot run foreplan's tasks: {error}; "
        "foreplan must be installed on its scheduler and workers, in this version"
    )


def _machine_name(address: str, name: Any, host: str, taken: set[str]) -> str:
    place = host
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            place = socket.gethostname()
    if isinstance(name, int):
        return f"dask-{name}@{place}"
    if isinstance(name, str) and name != address:
        return f"{name}@{place}"
    return next(m for i in range(len(taken) + 1) if (m := f"{place}#{i}") not in taken)


def connect(address: str, timeout: float) -> Any:
    """Return a client of the scheduler at this address."""
    security = _security_for(address)
    try:
        make: Any = Client  # it has no types
        return make(address, set_as_default=False, timeout=timeout, security=security)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(_explain(address, error)) from None


def _security_for(address: str) -> Any:
    """Return the certificates of Dask's configuration; refuse what cannot work with them.

    A client that fails for them while it is made is not closed properly.
    """
    if dask.config.get("distributed.client.security-loader", None):
        return None  # the client asks it
    security: Any = Security()  # type: ignore[no-untyped-call]
    if not address.startswith("tls://"):
        if security.require_encryption:
            raise InputError(
                "Dask's configuration requires encryption (distributed.comm.require-encryption): "
                f"say tls:// instead of dask:// for {address.partition('://')[2]}"
            )
        return security
    given = (security.tls_ca_file, security.tls_client_cert, security.tls_client_key)
    files = dict(zip(_FILES, given, strict=True))
    for key, file in files.items():  # the text of a certificate may stand there, too
        if file and "\n" not in file and not os.path.exists(file):
            raise InputError(f"there is no file {file}, but Dask's configuration has it as {key}")
    try:
        context = security.get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:
        raise InputError(f"Dask's {', '.join(_FILES)} cannot be used: {error}") from None
    if context is None:
        lacking = ", ".join(key for key in _FILES if not files[key])
        raise InputError(f"TLS needs certificates: set {lacking} in Dask's configuration")
    return security


def _explain(address: str, error: BaseException) -> str:
    """Return why no client of a scheduler could be made."""
    kind, _, place = address.partition("://")
    first = (str(error).splitlines() or [type(error).__name__])[0]
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate of the Dask scheduler at {address} does not match {_FILES[0]}"
    if isinstance(cause, ssl.SSLEOFError) or "_ALERT_" in first:
        return f"the Dask scheduler at {address} refuses the certificate of {_FILES[1]}"
    advice = ""
    if kind == "tls" and not _uses_tls(place):
        advice = f"; is it without TLS? then say dask://{place}"
    elif kind != "tls" and _uses_tls(place):
        advice = f"; it uses TLS: say tls://{place}"
    return f"no Dask scheduler answers at {address}: {first}{advice}"


def _uses_tls(place: str) -> bool:
    """Return whether whoever listens at a host and port answers to TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent to it
    host, _, port = place.rpartition(":")
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), _PROBED_IN) as plain,
            context.wrap_socket(plain),
        ):
            return True
    except (OSError, ValueError):
        return False


def _named(worker: Worker) -> list[str]:
    name, threads, *_ = worker
    base = str(name) if isinstance(name, str) else f"dask-{name}"
    return [base if threads == 1 else f"{base}#{k}" for k in range(threads)]


def _platform(workers: Mapping[str, Worker], shared: bool, network: Link) -> Platform:
    """All processors of a cluster; names that are given twice get the address added."""
    processors: list[Processor] = []
    taken: set[str] = set()
    for address, worker in workers.items():
        for name in _named(worker):
            unique = name if name not in taken else f"{name}@{address}"
            taken.add(unique)
            processors.append(Processor(unique, host=SHARED if shared else address))
    has = {} if shared else {a: Host(a, worker.amounts) for a, worker in workers.items()}
    return Platform.build(processors, network=LINK if shared else network, has=has)


def extended(platform: Platform, host: Host, names: list[str]) -> Platform:
    """The platform with more processors at its end, on a host that may be new."""
    hosts, network, longer = platform.host_names, platform.network, dict[str, Any]()
    if host.name not in hosts:
        hosts = (*hosts, host.name)
        longer["hosts"] = (*platform.hosts, host) if platform.hosts else ()
        longer["startup"] = _wider(platform.startup, network.startup)
        longer["time_per_unit"] = _wider(platform.time_per_unit, network.time_per_unit)
        longer["link_price"] = _wider(platform.link_price, network.price)
    more = Platform.build([Processor(name, host.name) for name in names])
    each = ("speed", "price", "joins", "leaves", "billing")
    for name in each:
        longer[name] = np.append(getattr(platform, name), getattr(more, name))
    return replace(
        platform,
        processor_names=platform.processor_names + more.processor_names,
        host_names=hosts,
        host=np.append(platform.host, more.host + hosts.index(host.name)),
        **longer,
    )


def _wider(links: Any, value: float) -> Any:
    n = len(links)
    wider = np.full((n + 1, n + 1), value)
    wider[:n, :n] = links
    wider[n, n] = 0.0
    return wider
