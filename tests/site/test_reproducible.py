"""One commit gives one site, byte for byte, wherever and whenever it is built."""

from pathlib import Path

import pytest


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_two_builds_are_the_same_bytes(site: Path, site_elsewhere: Path) -> None:
    first, second = contents(site), contents(site_elsewhere)
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []
    assert {"index.html", "search/search_index.json", "sitemap.xml.gz"} <= set(first)
