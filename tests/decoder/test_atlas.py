"""The atlas: a row for every model and system, its figures those of the released counts."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from decoder import atlas
from decoder.families import RELEASED, SYSTEMS

DATA = Path(__file__).parent / "data"
COUNTS = {row["name"]: row for row in json.loads((DATA / "released_counts.json").read_text())}


class Rows(HTMLParser):
    """Rows of cells, and every id."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def parsed() -> Rows:
    rows = Rows()
    rows.feed(atlas.table())
    return rows


def test_every_model_and_system_has_a_row_of_its_own():
    found = parsed()
    names = [row.name for row in RELEASED + SYSTEMS]
    assert [row[0] for row in found.rows[1:]] == names
    assert len(set(found.ids)) == len(found.ids) == len(names) > 100


def test_figures_are_those_counted_elsewhere():
    found = {row[0]: row for row in parsed().rows[1:]}
    heads = [column.name for column in atlas.COLUMNS]
    checked = 0
    for row in RELEASED:
        counted = COUNTS[row.name]
        shown = dict(zip(heads, found[row.name][2:], strict=False))
        assert shown["parameters"] == f"{counted['total']:,}"
        checked += 1
    assert checked == len(RELEASED)


def test_what_is_not_published_is_said():
    found = {row[0]: " ".join(row) for row in parsed().rows[1:]}
    for system in SYSTEMS:
        if system.config is None:
            assert re.search(f"{atlas.NOT_PUBLISHED}|no decoder of one known shape", found[system.name]), system.name
    assert atlas.NOT_PUBLISHED in found["GPT-4"]


def test_doubtful_values_are_marked_with_their_reason():
    table = atlas.table()
    start = table.index('<tr id="mosaicml-mpt-7b"')
    row = table[start : table.index("</tr>", start)]
    assert f'title="width: {atlas.UNVERIFIED}">?</abbr>' in row
    assert f'title="vocab: {atlas.UNVERIFIED}">?</abbr>' in row


def test_records_hold_plain_json():
    records = atlas.records()
    assert json.loads(json.dumps(records)) == records
    deepseek = next(record for record in records if record["name"] == "deepseek-ai/DeepSeek-V3")
    assert (deepseek["cache_bytes_per_token"], deepseek["experts"]) == (70_272, "8 of 256 and 1 shared")
