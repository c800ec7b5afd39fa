// What is quicker with a script: search as one types, and keys. All of it works without.
"use strict";

const search = document.getElementById("search");
const found = document.getElementById("found");

if (search && found) {
  const field = search.querySelector("input[type=search]");
  let waiting = 0;
  let asked = 0;
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const mine = ++asked;
      const query = new URLSearchParams(new FormData(search));
      const answer = await fetch(`${search.dataset.rows}?${query}&rows=yes`);
      const text = await answer.text();
      // An earlier answer may come later.
      if (mine === asked && answer.ok) {
        found.innerHTML = text;
        history.replaceState(null, "", `${search.dataset.rows}?${query}`);
      }
    }, 150);
  });
}

const rows = () => [...document.querySelectorAll(".rows > li")].filter((row) => row.querySelector("a.row"));

function go(step) {
  const all = rows();
  const here = all.findIndex((row) => row.classList.contains("here"));
  const next = all[Math.min(Math.max(here + step, 0), all.length - 1)];
  if (!next) return;
  all.forEach((row) => row.classList.remove("here"));
  next.classList.add("here");
  next.querySelector("a.row").focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "/") {
    event.preventDefault();
    (document.getElementById("q") || document.querySelector("input[type=search]")).focus();
  } else if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
  else if (event.key === "?") document.getElementById("keys").showModal();
});
