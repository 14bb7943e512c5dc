// Starts the tool of each element that asks for one. A page without tools loads nothing more.

const TOOLS = {
  atlas: () => import("./atlas.js"),
  audit: () => import("./audit_form.js"),
  calculator: () => import("./calculator.js"),
  "rotation-explorer": () => import("./rotation.js"),
};

for (const host of document.querySelectorAll("[data-widget]")) {
  const tool = TOOLS[host.dataset.widget];
  if (tool) tool().then(({ start }) => start(host));
}
