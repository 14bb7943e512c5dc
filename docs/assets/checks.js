// Where a number comes from: a switch that marks every computed number of the page, and a card on hover, focus or tap.

const KEY = "decoder-budgets.show-checks";
const LEAVE_MS = 250;

const root = document.documentElement;
const button = document.querySelector(".checks-switch");
const claims = [...document.querySelectorAll("data.claim")];
const plain = claims.filter((claim) => !claim.querySelector("a")); // a citation is reached by its own link

function stored() {
  try {
    return localStorage.getItem(KEY) === "true";
  } catch {
    return false; // storage may be refused: then the switch lasts for one page
  }
}

function store(shown) {
  try {
    localStorage.setItem(KEY, String(shown));
  } catch {
    // see stored()
  }
}

// Hundreds of numbers would be hundreds of stops for the Tab key, so they are stops only while the checks are shown.
function showChecks(shown) {
  root.classList.toggle("show-checks", shown);
  button.setAttribute("aria-pressed", String(shown));
  for (const claim of plain) claim.tabIndex = shown ? 0 : -1;
}

const card = document.createElement("span");
card.className = "checks-card";
card.id = "checks-card";
card.setAttribute("role", "tooltip");
card.popover = "manual";
let owner = null;
let openAtPress = null; // a second tap closes the card
let leaving = 0;

function line(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

function fill({ expression, exact, block, source, note, unverified }) {
  card.replaceChildren();
  if (expression) card.append(line("code", expression), line("span", `= ${exact}`));
  if (source) card.append(line("span", `Cited: ${source}`));
  if (note) card.append(line("span", note));
  if (unverified) card.append(line("span", `Not verified at the source: ${unverified}`));
  if (!block) return;
  const link = line("a", "Go to the code that computes it");
  link.href = block;
  card.append(link);
}

// The card follows its number in the document, so that the Tab key reaches its link next.
function open(claim) {
  clearTimeout(leaving);
  if (owner === claim) return;
  close();
  owner = claim;
  fill(claim.dataset);
  claim.after(card);
  claim.setAttribute("aria-describedby", card.id);
  card.showPopover?.();
  const at = claim.getBoundingClientRect();
  const room = root.clientWidth - card.offsetWidth - 8;
  const below = at.bottom + card.offsetHeight + 8 < innerHeight || at.top < card.offsetHeight + 64;
  card.style.inset = "auto";
  card.style.left = `${scrollX + Math.max(8, Math.min(at.left, room))}px`;
  card.style.top = `${scrollY + (below ? at.bottom + 4 : at.top - card.offsetHeight - 4)}px`;
}

function close() {
  clearTimeout(leaving);
  if (!owner) return;
  owner.removeAttribute("aria-describedby");
  owner = null;
  card.hidePopover?.();
  card.remove();
}

function leave() {
  clearTimeout(leaving);
  leaving = setTimeout(close, LEAVE_MS);
}

const within = (node) => node instanceof Node && (owner?.contains(node) || card.contains(node));

if (button && claims.length) {
  showChecks(stored());
  button.addEventListener("click", () => {
    const shown = !root.classList.contains("show-checks");
    store(shown);
    showChecks(shown);
  });
  for (const claim of claims) {
    claim.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && open(claim));
    claim.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
    claim.addEventListener("focusin", () => open(claim));
    claim.addEventListener("click", (event) => {
      if (event.pointerType === "touch" && openAtPress === claim) close();
      else open(claim);
    });
  }
  card.addEventListener("pointerenter", () => clearTimeout(leaving));
  card.addEventListener("pointerleave", leave);
  document.addEventListener("focusout", (event) => within(event.target) && !within(event.relatedTarget) && leave());
  document.addEventListener("focusin", (event) => within(event.target) && clearTimeout(leaving));
  document.addEventListener("keydown", (event) => event.key === "Escape" && close());
  document.addEventListener("pointerdown", (event) => {
    openAtPress = owner;
    if (!within(event.target)) close();
  });
}
