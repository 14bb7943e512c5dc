// Sorting and filtering of the atlas, whose rows the page already holds.

const UNKNOWN = null; // rows without a figure stand last either way

export function start(host) {
  const table = host.querySelector("table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const form = host.querySelector("form");
  const count = form.querySelector("output");
  const at = (name) => heads.findIndex((head) => head.dataset.name === name);
  let sorted = { name: "", falling: false };

  function key(row, column) {
    const cell = row.cells.length === heads.length ? row.cells[column] : column < 2 ? row.cells[column] : null;
    if (!cell) return UNKNOWN;
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    return column === at("year") ? Number(cell.textContent) : cell.textContent.toLowerCase();
  }

  function sort(name, falling) {
    const column = at(name);
    if (column < 0) return;
    sorted = { name, falling };
    const keyed = rows.map((row, i) => [key(row, column), i, row]);
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (falling ? -1 : 1);
    keyed.sort(([a, i], [b, j]) => (a === UNKNOWN) - (b === UNKNOWN) || order(a, b) || i - j);
    body.append(...keyed.map(([, , row]) => row));
    for (const head of heads) {
      if (head.dataset.name === name) head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  function filter() {
    const { q, norm, positions, share, experts } = Object.fromEntries(new FormData(form));
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const is = (row, name, start) => row.cells.length === heads.length && row.cells[at(name)].textContent.startsWith(start);
    let left = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const kept =
        words.every((word) => text.includes(word)) &&
        (!norm || (is(row, "norm", norm) && !(norm === "LayerNorm" && is(row, "norm", "LayerNorm,")))) &&
        (!positions || is(row, "positions", positions)) &&
        (!share || row.dataset.share === share) &&
        (!experts || (row.cells.length === heads.length && is(row, "experts", "none") === (experts === "no")));
      row.hidden = !kept;
      left += kept;
    }
    count.textContent = left === rows.length ? `${left} rows` : `${left} of ${rows.length} rows`;
  }

  function remember() {
    const words = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    if (sorted.name) words.set("sort", (sorted.falling ? "-" : "") + sorted.name);
    history.replaceState(history.state, "", String(words) ? `#atlas&${words}` : location.pathname + location.search);
  }

  function recall() {
    if (!location.hash.startsWith("#atlas&")) return;
    const words = new URLSearchParams(location.hash.slice("#atlas&".length));
    for (const control of form.elements) if (control.name && words.has(control.name)) control.value = words.get(control.name);
    const name = words.get("sort");
    if (name) sort(name.replace(/^-/, ""), name.startsWith("-"));
    filter();
  }

  for (const [column, head] of heads.entries()) {
    const numeric = rows.some((row) => row.cells.length === heads.length && row.cells[column].dataset.value !== undefined);
    if (numeric || head.dataset.name === "year") head.dataset.number = "yes";
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const { name } = head.dataset;
      sort(name, sorted.name === name ? !sorted.falling : head.dataset.number === "yes");
      remember();
    });
    head.append(button);
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    filter();
    remember();
  });
  recall();
}
