"""The policy allows a page's own inline scripts by their hash, and nothing that is not there."""

import base64
from hashlib import sha256

from claims.site.policy import install, policy, with_policy

PAGE = (
    '<!doctype html><html><head><meta charset="utf-8"><title>é</title>'
    '<script>let a = "é";</script><script type="application/json">{"b": 1}</script><script src="c.js"></script>'
    '<script type="module">\nd();\n</script></head><body><p>text</p></body></html>'
)


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def test_inline_scripts_are_allowed_by_their_hash():
    [scripts] = [rule for rule in policy(PAGE).split("; ") if rule.startswith("script-src")]
    assert scripts.split() == ["script-src", "'self'", *sorted([digest('let a = "é";'), digest("\nd();\n")])]


def test_a_page_without_scripts_allows_its_own_files_alone():
    assert "script-src 'self';" in policy("<html><head></head></html>")
    assert "default-src 'none'" in policy("")


def test_the_policy_comes_before_every_script():
    html = with_policy(PAGE)
    assert html.startswith(
        '<!doctype html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
    )
    assert html.replace(html[html.index("<meta http") : html.index("<title>")], "") == PAGE
    assert with_policy(html) == html


def test_what_has_no_head_is_left_alone():
    assert with_policy("<p>part</p>") == "<p>part</p>"


def test_every_page_of_a_site_gets_one(tmp_path):
    (tmp_path / "a").mkdir()
    for path in ("index.html", "a/index.html"):
        (tmp_path / path).write_text(PAGE, "utf-8")
    install(tmp_path)
    assert all("default-src" in (tmp_path / path).read_text("utf-8") for path in ("index.html", "a/index.html"))
