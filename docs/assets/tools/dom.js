// Elements in one expression.

// element("label", { for: "x", class: "y" }, "text", child): attributes that are false or null are left out.
export function element(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "circle", "line", "path", "text", "title"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

export function options(values, chosen) {
  return values.map((value) => {
    const [name, shown] = Array.isArray(value) ? value : [value, value];
    return element("option", { value: name, selected: name === chosen }, shown);
  });
}

// Puts a text on the clipboard and says so; where that is refused the text is shown to be copied by hand.
export async function copy(text, what, status) {
  try {
    await navigator.clipboard.writeText(text);
    status.replaceChildren(`${what} copied.`);
  } catch {
    const area = element("textarea", { readonly: true, rows: 6, "aria-label": what }, text);
    status.replaceChildren(`${what}, to copy by hand:`, area);
    area.select();
  }
}
