"""How a page looks where somebody shares it: title, description, image, with absolute addresses."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from bs4 import BeautifulSoup
from jinja2 import DictLoader, Environment

ROOT = Path(__file__).parents[2]
ADDRESS = "https://example.org/book/"


def said(soup: BeautifulSoup) -> dict[str, str]:
    return {
        meta.get("property") or meta["name"]: meta["content"]
        for meta in soup.select("meta[property^='og:'], meta[name^='twitter:']")
    }


def written(site_url: str, page: SimpleNamespace | None) -> dict[str, str]:
    """What our part of the template writes into the head of a page."""
    ours = (ROOT / "docs/.overrides/main.html").read_text("utf-8")
    base = "{% block extrahead %}{% endblock %}{% block content %}{% endblock %}"
    templates = Environment(loader=DictLoader({"main.html": ours, "base.html": base}))
    templates.filters["url"] = lambda path: f"../{path}"
    config = SimpleNamespace(site_name="The Book", site_url=site_url, site_description='Of "budgets".')
    html = templates.get_template("main.html").render(config=config, page=page)
    return said(BeautifulSoup(html, "html.parser"))


def page(**more: object) -> SimpleNamespace:
    usual = {"title": "<code>Heads</code> &amp; cache", "meta": {}, "is_homepage": False, "content": ""}
    return SimpleNamespace(**(usual | {"canonical_url": f"{ADDRESS}heads/"} | more))


def test_a_published_page() -> None:
    assert written(ADDRESS, page(meta={"title": "Heads", "description": 'What a "head" costs.'})) == {
        "og:type": "article",
        "og:site_name": "The Book",
        "og:title": "Heads",
        "og:description": 'What a "head" costs.',
        "og:url": f"{ADDRESS}heads/",
        "og:image": f"{ADDRESS}assets/generated/card.png",
        "og:image:width": "1200",
        "og:image:height": "630",
        "og:image:alt": 'The Book: Of "budgets".',
        "twitter:card": "summary_large_image",
    }


def test_the_front_page_and_a_page_that_says_nothing() -> None:
    front = written(ADDRESS, page(is_homepage=True, canonical_url=ADDRESS))
    assert (front["og:type"], front["og:title"], front["og:url"]) == ("website", "The Book", ADDRESS)
    silent = written(ADDRESS, page())
    assert (silent["og:title"], silent["og:description"]) == ("Heads & cache", 'Of "budgets".')


@pytest.mark.parametrize(
    ("site_url", "of"), [("", page(canonical_url=None)), (ADDRESS, None)], ids=["no address", "404"]
)
def test_without_an_address_no_image_is_promised(site_url: str, of: SimpleNamespace | None) -> None:
    assert set(written(site_url, of)) == {"og:type", "og:site_name", "og:title", "og:description"}


def front_matter(site: Path, built: Path) -> dict[str, str]:
    path = ROOT / "docs" / built.parent.relative_to(site)
    source = path / "index.md" if path.is_dir() else path.with_suffix(".md")
    return yaml.safe_load(source.read_text("utf-8").split("---\n")[1])


def test_every_built_page_says_what_its_front_matter_says(site: Path) -> None:
    built = sorted(site.rglob("index.html"))
    assert len(built) > 50
    for path in built:
        soup, meta = BeautifulSoup(path.read_text("utf-8"), "html.parser"), front_matter(site, path)
        assert said(soup)["og:description"] == meta["description"], path
        assert soup.select_one('meta[name="description"]')["content"] == meta["description"], path
        assert "title" not in meta or said(soup)["og:title"] == meta["title"], path


def test_what_pages_name_is_there(site: Path) -> None:
    soup = BeautifulSoup((site / "decisions/index.html").read_text("utf-8"), "html.parser")
    icons = {link["rel"][0]: link["href"] for link in soup.select("link[rel=icon], link[rel=apple-touch-icon]")}
    assert icons == {
        "icon": "../assets/generated/favicon.svg",
        "apple-touch-icon": "../assets/generated/touch-icon.png",
    }
    assert (site / "assets/generated/card.png").read_bytes().startswith(b"\x89PNG")
    for href in icons.values():
        assert (site / "decisions" / href).resolve().is_file()
