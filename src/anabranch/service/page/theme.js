// The theme, set before anything is painted: a plain script in the head, so that no page flashes in the other colours.
//
// window.anabranchTheme.get()       "light" | "dark" | "auto": what the user has chosen
// window.anabranchTheme.shown()     "light" | "dark": what is on the screen
// window.anabranchTheme.set(choice) chooses, remembers it, and sends `themechange` to the window
// The window also gets `themechange` where the system's own setting changes, so that canvases can be drawn anew.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let choice = "auto";
  try {
    const kept = localStorage.getItem("theme");
    if (kept === "light" || kept === "dark") choice = kept;
  } catch { /* a browser without storage follows the system */ }
  const shown = () => (choice === "auto" ? (dark.matches ? "dark" : "light") : choice);
  const apply = () => {
    document.documentElement.dataset.theme = shown();
    window.dispatchEvent(new Event("themechange"));
  };
  dark.addEventListener("change", apply);
  window.anabranchTheme = {
    get: () => choice,
    shown,
    set(wanted) {
      choice = wanted;
      try {
        if (wanted === "auto") localStorage.removeItem("theme");
        else localStorage.setItem("theme", wanted);
      } catch { /* then it holds for this page only */ }
      apply();
    },
  };
  apply();
})();
