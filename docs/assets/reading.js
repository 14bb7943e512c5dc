// Comforts of reading: what scrolls sideways can be reached by keyboard, copied formulas are LaTeX, regions have names.

const SCROLLERS = ".math.display, .claims-drawing, .claims-output, .claims-table, .md-typeset__scrollwrap";

// Told after each layout of what it watches, it never asks for one.
const reach = new ResizeObserver((entries) => {
  const wide = entries.map(({ target }) => target.scrollWidth > target.clientWidth);
  entries.forEach(({ target }, index) => (wide[index] ? target.setAttribute("tabindex", "0") : target.removeAttribute("tabindex")));
});

function watch() {
  for (const element of document.querySelectorAll(SCROLLERS)) reach.observe(element);
}

watch();

document.addEventListener("copy", (event) => {
  const selection = getSelection();
  if (!selection.rangeCount) return;
  const copied = document.createElement("div");
  copied.append(selection.getRangeAt(0).cloneContents());
  const formulas = copied.querySelectorAll(".math[data-latex]");
  if (!formulas.length) return;
  for (const formula of formulas) {
    const fence = formula.classList.contains("display") ? "$$" : "$";
    formula.textContent = fence + formula.dataset.latex + fence;
  }
  copied.className = "copied";
  document.body.append(copied); // only what is laid out knows its line breaks
  event.clipboardData.setData("text/plain", copied.innerText);
  event.clipboardData.setData("text/html", copied.innerHTML);
  copied.remove();
  event.preventDefault();
});

// Names that Material leaves out or gives twice.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
document.querySelector(".md-path")?.setAttribute("aria-label", "Breadcrumbs");
for (const section of document.querySelectorAll(".md-nav .md-nav[aria-labelledby]")) {
  section.removeAttribute("aria-labelledby");
  section.setAttribute("aria-label", section.querySelector(".md-nav__title").textContent.trim());
}

// Material wraps tables after this script has run, and makes the buttons of a code block, a landmark each, when the block
// comes into view.
new MutationObserver(() => {
  watch();
  for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])")) buttons.setAttribute("role", "none");
}).observe(document.querySelector(".md-content"), { childList: true, subtree: true });
