"""Runs on a Dask cluster with TLS, with the certificates of Dask's configuration."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.executors.base import find_scheme

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
KEYS = ("ca-file", "client.cert", "client.key")
WORKFLOW = {
    "tasks": {
        "a": {"run": "echo a > a.txt", "outputs": ["a.txt"]},
        "b": {"run": "cat a.txt > b.txt", "inputs": ["a.txt"], "outputs": ["b.txt"]},
    }
}


def certificate(folder: Path, name: str) -> tuple[str, str]:
    """Make a certificate that is signed by its own key, and return both files."""
    cert, key = str(folder / f"{name}.pem"), str(folder / f"{name}-key.pem")
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


class Cluster:
    """A cluster with TLS, and configurations of its clients."""

    def __init__(self, folder: Path, cert: str, key: str, address: str) -> None:
        self.cert, self.key, self.address = cert, key, address
        self.other, self.other_key = certificate(folder, "other")

    def trusting(self, ca: str | None, cert: str | None, key: str | None) -> Any:
        given = zip(KEYS, (ca, cert, key), strict=True)
        return dask.config.set({f"distributed.comm.tls.{name}": file for name, file in given})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = certificate(folder, "dask")
    untyped: Any = distributed
    own = {f"tls_{role}_{kind}": file
           for role in ("scheduler", "worker", "client")
           for kind, file in (("cert", cert), ("key", key))}  # fmt: skip
    security = untyped.Security(tls_ca_file=cert, require_encryption=True, **own)
    with untyped.LocalCluster(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        protocol="tls",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        security=security,
    ) as running:
        yield Cluster(folder, cert, key, running.scheduler_address)


def test_a_run_and_its_resume(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "home"))
    assert cluster.address.startswith("tls://")
    with cluster.trusting(cluster.cert, cluster.cert, cluster.key):
        outcome = foreplan.run(WORKFLOW, cluster.address, dir=tmp_path)
        assert outcome.ok
        assert (tmp_path / "b.txt").read_text() == "a\n"
        assert foreplan.run(WORKFLOW, dir=tmp_path, resume=outcome.id).ok
    journal = (outcome.home / "journal.jsonl").read_text()
    assert cluster.address in journal
    assert ".pem" not in journal


def test_a_client_with_tls_stands_for_its_address(cluster: Cluster) -> None:
    with cluster.trusting(cluster.cert, cluster.cert, cluster.key):
        client = find_scheme(cluster.address).connect(cluster.address, 30.0)
    with client:
        assert find_scheme(client).place(client) == cluster.address


def test_certificates_that_do_not_fit(cluster: Cluster, tmp_path: Path) -> None:
    cert, key, other, other_key = cluster.cert, cluster.key, cluster.other, cluster.other_key
    missing = str(tmp_path / "missing.pem")
    problems = [
        ((None, None, None), "TLS needs certificates: set distributed.comm.tls.ca-file, "),
        ((cert, None, None), "TLS needs certificates: set distributed.comm.tls.client.cert, "),
        ((missing, cert, key), f"there is no file {missing}, "),
        ((cert, cert, other_key), "key values mismatch"),
        ((other, cert, key), "does not match distributed.comm.tls.ca-file"),
        ((cert, other, other_key), "refuses the certificate of distributed.comm.tls.client.cert"),
    ]
    for files, problem in problems:
        with cluster.trusting(*files), pytest.raises(InputError) as caught:
            find_scheme(cluster.address).look(cluster.address)
        assert problem in str(caught.value)


def test_an_address_without_tls(cluster: Cluster) -> None:
    on = cluster.address.replace("tls://", "dask://")
    with pytest.raises(InputError, match=f"it uses TLS: say {cluster.address}"):
        find_scheme(on).look(on)
    required = dask.config.set({"distributed.comm.require-encryption": True})
    with required, pytest.raises(InputError, match="say tls:// instead of dask://"):
        find_scheme(on).look(on)
