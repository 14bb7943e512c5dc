"""A site as files: modules become one plain script, in order; what cannot become one is refused."""

import json
import shutil
import subprocess

import pytest
from click.testing import CliRunner

from claims.__main__ import main
from claims.site.offline import OfflineError, bundle, install

NODE = shutil.which("node")
FILES = {
    "assets/a.js": 'import { one, two as deux } from "./lib/b.js";\n'
    'import("./c.js").then(({ go }) => go(one + deux));\n',
    "assets/c.js": 'import {\n  one,\n} from "./lib/b.js";\nconst two = 5;\n'
    'export const go = (x) => console.log("went", x, one, two);\n',
    "assets/lib/b.js": 'console.log("once");\n'
    "export const one = 1;\nexport function two() {}\ntwo.valueOf = () => 40;\n"
    "export class Three {}\n",
}
PAGE = (
    '<html><head><meta http-equiv="Content-Security-Policy" content="default-src \'none\'"></head><body>'
    '<script src="../assets/javascripts/bundle.1.min.js"></script><script src="../assets/a.js" type="module"></script>'
    '<script src="../assets/c.js" type="module"></script></body></html>'
)


@pytest.fixture
def site(tmp_path):
    for name, text in {**FILES, "p/q.html": PAGE, "search/search_index.json": '{"docs": [1]}'}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.skipif(NODE is None, reason="no node on this machine: the bundle was not run")
def test_the_bundle_runs_each_module_once(site):
    script = bundle(site, ["assets/a.js", "assets/c.js"])
    done = subprocess.run([NODE, "-e", script], capture_output=True, text=True)
    assert done.stdout.split("\n") == ["once", "went 41 1 5", ""], done.stderr


def test_pages_get_plain_scripts_and_a_policy_for_files(site):
    assert install(site) == 1
    html = (site / "p/q.html").read_text("utf-8")
    assert "module" not in html
    worker, own = html.index('<script src="../assets/offline-worker.js">'), html.index('src="../assets/offline.js"')
    assert worker < html.index("bundle.1.min.js") < own
    assert "script-src 'self' file:" in html.replace("&#x27;", "'")
    index = (site / "search/search_index.js").read_text("utf-8")
    assert json.loads(index.removeprefix("var __index = ").rstrip(";\n")) == {"docs": [1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('import "./x.js";\n', "assets/a.js: import \"./x.js\";: only named imports and exports can be bundled"),
        ("export default 3;\n", "assets/a.js: export default 3;: only named imports and exports can be bundled"),
        ('import { y } from "./none.js";\n', "assets/none.js: No such file or directory"),
        ('import { go } from "./a.js";\n', "assets/a.js: imports itself by way of "),
    ],
)  # fmt: skip
def test_what_cannot_be_bundled_is_refused(site, text, message):
    (site / "assets/a.js").write_text(text)
    with pytest.raises(OfflineError) as refused:
        bundle(site, ["assets/a.js"])
    assert str(refused.value).startswith(message)
    done = CliRunner().invoke(main, ["offline", str(site)])
    assert done.exit_code == 1 and message in done.output


def test_the_command_counts_pages(site):
    done = CliRunner().invoke(main, ["offline", str(site)])
    assert done.output.endswith("index.html\n") and "1 pages work as files" in done.output
