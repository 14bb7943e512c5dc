// A field for an answer before looking: what is written stays in this browser. Without this script it is plain paper.

const PREFIX = "decoder-budgets.answer.";

function stored(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return ""; // storage may be refused: then the answer lasts as long as the page
  }
}

function store(key, text) {
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    // see stored()
  }
}

for (const field of document.querySelectorAll("textarea[data-answer]")) {
  const key = PREFIX + field.dataset.answer;
  const clear = document.createElement("button");
  clear.type = "button";
  clear.className = "answer-clear";
  clear.textContent = "Clear";
  clear.setAttribute("aria-label", `Clear: ${field.labels[0]?.firstChild.textContent.trim() ?? "your answer"}`);

  const update = () => {
    store(key, field.value);
    clear.hidden = !field.value;
  };
  field.value ||= stored(key);
  clear.hidden = !field.value;
  field.addEventListener("input", update);
  clear.addEventListener("click", () => {
    field.value = "";
    update();
    field.focus();
  });
  field.closest("label")?.after(clear);
}
