// Draws the graphs of a chapter when their cases are opened, and opens the case that the address names.

/** @param {Element} figure */
function drawGraphIn(figure) {
  const graph = figure.getAttribute("data-graph");
  if (graph) figure.replaceChildren(graphOf(JSON.parse(graph)));
  figure.removeAttribute("data-graph");
}

function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
    named.scrollIntoView();
  }
}

document.addEventListener("toggle", (event) => {
  if (event.target instanceof HTMLDetailsElement && event.target.open) event.target.querySelectorAll("figure[data-graph]").forEach(drawGraphIn);
}, true);
window.addEventListener("hashchange", openNamed);
document.addEventListener("DOMContentLoaded", openNamed);
