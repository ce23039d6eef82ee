// Draws the graphs of a chapter when their cases are opened, and opens the case that the address names.

/** @param {HTMLElement} figure */
function drawn(figure) {
  if (figure.dataset.graph) figure.replaceChildren(graphOf(JSON.parse(figure.dataset.graph)));
  delete figure.dataset.graph;
}

function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
    named.scrollIntoView();
  }
}

document.addEventListener("toggle", (event) => {
  if (event.target instanceof HTMLDetailsElement && event.target.open) event.target.querySelectorAll("figure[data-graph]").forEach(drawn);
}, true);
window.addEventListener("hashchange", openNamed);
document.addEventListener("DOMContentLoaded", openNamed);
