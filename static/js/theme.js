// Light or dark: the system decides unless the reader chose. Loaded in the head, so no page flashes the other one.
"use strict";
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function stored() {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // storage is blocked: the system's choice holds
    }
  }

  function current() {
    return root.dataset.theme || (dark.matches ? "dark" : "light");
  }

  function choose(theme) {
    root.dataset.theme = theme;
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // Chosen for this page only.
    }
  }

  const theme = stored();
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-switch]");
    const name = () => (button.textContent = current() === "dark" ? button.dataset.light : button.dataset.dark);
    name();
    button.classList.add("on");
    button.addEventListener("click", () => {
      choose(current() === "dark" ? "light" : "dark");
      name();
    });
    dark.addEventListener("change", name);
  });
})();
