"""Revisions of a model on the hub, from a local cache in the hub's layout and a local hub."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models import catalog
from contstim.models.checkpoints import load_checkpoint
from contstim.models.checkpoints.source import stamp
from contstim.models.loading import Loading
from contstim.models.specifications import hub_commit, parse_model, parse_models
from tests.models.checkpoints.conftest import SENTENCES, edit_weights
from tests.models.tiny import Folder

NAME, OLD, NEW = "someone/small", "a" * 40, "b" * 40
CPU = Loading(device="cpu")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty local cache, while the hub is unreachable."""
    from huggingface_hub import constants

    folder = tmp_path / ".cache"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    return folder


def add_snapshot(
    cache: Path, source: Path, commit: str, *references: str, name: str = NAME
) -> None:
    """Add a snapshot to the cache in the layout of the hub's library, with links to blobs."""
    model = cache / f"models--{name.replace('/', '--')}"
    snapshot = model / "snapshots" / commit
    for folder in (snapshot, model / "blobs"):
        folder.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        blob = model / "blobs" / f"{commit[:4]}-{file.name}"
        shutil.copyfile(file, blob)
        (snapshot / file.name).symlink_to(f"../../blobs/{blob.name}")
    for reference in references:
        path = model / "refs" / reference
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(commit)


@pytest.fixture
def folders(tmp_path: Path, cache: Path, tiny_checkpoint: Folder) -> tuple[Path, Path]:
    """Two networks in folders; in the cache, the first is tag v1 and the second branch main."""
    old = tiny_checkpoint("gpt2")
    new = shutil.copytree(old, tmp_path / "new")
    edit_weights(new, lambda weights: weights["transformer.wte.weight"].mul_(0.5))
    add_snapshot(cache, old, OLD, "v1", "refs/pr/1")
    add_snapshot(cache, new, NEW, "main")
    return old, new


@pytest.mark.parametrize(
    ("revision", "is_old"),
    [("", 0), (":main", 0), (":v1", 1), (":refs/pr/1", 1), (f":{OLD}", 1), (f":{NEW}", 0)],
)
def test_branches_tags_and_commits_are_loaded(
    folders: tuple[Path, Path], revision: str, is_old: int
) -> None:
    """Witness: the folder that was put into the cache at that commit."""
    folder, commit = (folders[0], OLD) if is_old else (folders[1], NEW)
    model = catalog.load_model(f"hf:{NAME}{revision}@chain", device="cpu")
    expected = catalog.load_model(f"hf:{folder}@chain", device="cpu")
    np.testing.assert_array_equal(model.log_probs(SENTENCES), expected.log_probs(SENTENCES))
    assert model.convention == expected.convention
    assert catalog.hub_commits([f"hf:{NAME}{revision}@chain+mean"]) == {f"{NAME}{revision}": commit}
    assert stamp(f"{NAME}{revision}") == (commit,)
    assert catalog.parameter_count(f"{NAME}{revision}") == catalog.parameter_count(str(folder)) > 0
    mean = catalog.load_scorer(f"hf:{NAME}{revision}@chain+mean", device="cpu")
    assert mean.convention.rule == "chain+mean"
    # The commit in a record loads the same model
    reloaded = catalog.load_model(f"hf:{NAME}:{commit}@chain", device="cpu")
    assert reloaded.convention == model.convention


@pytest.mark.usefixtures("folders")
def test_two_revisions_are_two_models() -> None:
    first, second = catalog.load_models(
        ["a=hf:someone/small:v1", "b=hf:someone/small"], device="cpu"
    )
    assert first.convention.fingerprint != second.convention.fingerprint
    assert (first.log_probs(SENTENCES) != second.log_probs(SENTENCES)).all()
    with pytest.raises(ModelError, match="the same model"):
        parse_models(["a=hf:someone/small:main", "b=hf:someone/small"])


def test_moved_branch_is_loaded_again(folders: tuple[Path, Path], cache: Path) -> None:
    original = load_checkpoint(f"{NAME}:main", CPU)
    assert load_checkpoint(f"{NAME}:main", CPU) is original
    add_snapshot(cache, folders[0], "c" * 40, "main")
    assert hub_commit(f"{NAME}:main") == "c" * 40
    assert load_checkpoint(f"{NAME}:main", CPU) is not original


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize("revision", ["v9", "e" * 40, OLD[:7]])
def test_revision_outside_the_cache_is_refused(revision: str) -> None:
    with pytest.raises(ModelError, match=rf"'{revision}' of {NAME} .*--revision {revision} "):
        catalog.load_model(f"hf:{NAME}:{revision}")


@contextmanager
def run_hub(code: str) -> Iterator[str]:
    """Run a local hub that answers every request with one error code."""

    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=partial(server.serve_forever, 0.01), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.usefixtures("folders")
def test_revision_unknown_to_the_hub_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    with run_hub("RevisionNotFound") as address:
        monkeypatch.setattr(constants, "ENDPOINT", address)
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        with pytest.raises(ModelError, match=rf"{NAME} has no revision 'v9' .*a branch, a tag"):
            catalog.load_model(f"hf:{NAME}:v9")


def test_revision_of_a_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"small is on this machine .* 'main'.*Remove ':main'"):
        catalog.check_model(parse_model("hf:small:main"))
