"""Django, Hearthstone and made-up code: splits, digests, copies that are compressed or not."""

import gzip
import shutil

import pytest

from attention_jax.data import storage
from attention_jax.data.builders.django import Config as DjangoConfig
from attention_jax.data.builders.django import django_dataset_builder as django
from attention_jax.data.builders.hearthstone import Config as HearthstoneConfig
from attention_jax.data.builders.hearthstone import hearthstone_dataset_builder as hearthstone
from attention_jax.data.builders.smoke_code import SIZES, Config, made_up
from attention_jax.data.code import check_lengths
from attention_jax.data.loading import build_task
from attention_jax.data.preparation import load_examples
from attention_jax.errors import DataError


def test_django_is_split_in_order(real_data):
    examples = load_examples(django.Builder, DjangoConfig().builder_config())
    sizes = {name: len(split) for name, split in examples.items()}
    assert sizes == {"train": 16_000, "validation": 1_000, "test": 1_805}
    description, (line,) = examples["train"][0]
    assert description == "from threading import local into default name space."
    assert line == "from threading import local"
    assert examples["test"][-1][1][0] == " ".join(examples["test"][-1][1][0].split())


def test_hearthstone_has_its_own_splits(real_data):
    examples = load_examples(hearthstone.Builder, HearthstoneConfig().builder_config())
    assert [len(split) for split in examples.values()] == [533, 66, 66]
    card, (program,) = examples["train"][0]
    assert card.startswith("Acidic Swamp Ooze NAME_END 3 ATK_END")
    assert program.startswith("class AcidicSwampOoze(MinionCard):§ def __init__(self):§ super()")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_copy_is_checked_by_its_content(suffix, real_data, tmp_path, monkeypatch):
    """Whether it is compressed or not: the digest is of what was published."""
    mine = tmp_path / "django_code"
    mine.mkdir()
    content = gzip.decompress((real_data / "django_code" / "all.anno.gz").read_bytes())
    path = mine / f"all.anno{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    shutil.copyfile(real_data / "django_code" / "all.code.gz", mine / "all.code.gz")
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(tmp_path))
    assert len(django.read_examples()) == 18_805
    changed = content.replace(b"local", b"global", 1)
    path.write_bytes(gzip.compress(changed) if suffix else changed)
    with pytest.raises(DataError, match=r"all\.anno.*: expected sha256"):
        django.read_examples()
    if suffix:
        path.write_bytes(b"no archive")
        with pytest.raises(DataError, match=r"expected a gzip file, found a damaged one"):
            django.read_examples()


def test_what_is_not_at_hand_is_downloaded_from_the_pinned_commit(tmp_path, monkeypatch):
    asked = []
    place = tmp_path / "file"
    place.write_text("one\ntwo\n", encoding="utf-8")
    monkeypatch.delenv("ATTENTION_JAX_DATA", raising=False)
    monkeypatch.setattr(storage, "obtain", lambda *which: asked.append(which) or place)
    assert len(django.read_examples()) == len(hearthstone.read_examples("dev_hs")) == 2
    digests = {**storage.recorded_digests(django.__file__),
               **storage.recorded_digests(hearthstone.__file__)}  # fmt: skip
    for relative, url, digest in asked:
        name = relative.partition("/")[2]
        assert url.endswith(f"/{name}") and digest == digests[name]
        assert django.COMMIT in url or hearthstone.COMMIT in url


def test_files_of_different_lengths_are_refused():
    with pytest.raises(DataError, match="dev: expected as many .* as programs, found 1 and 2"):
        check_lengths("dev", ["a"], ["a", "b"])


def test_names_of_made_up_code_are_in_no_vocabulary(tmp_path):
    examples = made_up()
    assert {name: len(split) for name, split in examples.items()} == SIZES
    assert examples == made_up()
    task = build_task(Config(), tmp_path)
    seen = set(task.split("train").sources)
    unseen = [source for source in task.split("test").sources if source not in seen]
    assert len(unseen) > 0.9 * SIZES["test"]
    source, target = task.split("test").source_ids, task.split("test").target_ids
    unknown = [(ids == 3).sum() for ids in (*source, *target)]
    assert min(unknown) == max(unknown) == 2
