// The calculator: the answer follows the questions as they change, and so does the address. Without this script the
// button does both. Files and pasted text always go by the button.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("questions");
  const models = ["model", "params_b", "config"]; // only one of them can hold
  const bySubmit = ["config_text", "config_file"];
  let waiting = 0;
  let asking = null;

  function address() {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (!bySubmit.includes(name) && typeof value === "string" && value.trim()) query.set(name, value.trim());
    }
    return `${location.pathname}?${query}`;
  }

  function clearOtherModels(name) {
    for (const other of models) {
      const field = form.elements[other];
      if (other !== name && field) field.value = "";
    }
    document.getElementById("config-kept")?.remove();
  }

  // Only what the server says of each field is taken over, never what somebody is typing.
  function takeErrors(page) {
    form.querySelector(".form-errors")?.remove();
    form.querySelectorAll(".error").forEach((error) => error.remove());
    for (const field of form.querySelectorAll("[id^=id_]")) {
      const answered = page.getElementById(field.id);
      const error = page.getElementById(`${field.id}_error`);
      for (const name of ["aria-invalid", "aria-describedby"]) {
        if (answered?.hasAttribute(name)) field.setAttribute(name, answered.getAttribute(name));
        else field.removeAttribute(name);
      }
      if (error) field.before(error);
    }
  }

  function takeAnswer(page) {
    const shown = document.getElementById("answer");
    const fresh = page.getElementById("answer");
    const open = [...shown.querySelectorAll("details")].map((fold) => fold.open);
    const says = shown.querySelector(".answer");
    says.replaceChildren(...fresh.querySelector(".answer").childNodes); // the same element: changes are read aloud
    fresh.querySelector(".answer").replaceWith(says);
    shown.replaceWith(fresh);
    fresh.querySelectorAll("details").forEach((fold, at) => (fold.open = Boolean(open[at])));
  }

  async function ask() {
    asking?.abort();
    const own = (asking = new AbortController());
    const target = address();
    document.getElementById("answer").classList.add("updating");
    try {
      const response = await fetch(target, { signal: own.signal });
      if (!response.ok) throw new Error(String(response.status));
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      takeAnswer(page);
      takeErrors(page);
      history.replaceState(null, "", target);
      form.action = target;
    } catch (problem) {
      if (problem.name !== "AbortError") document.getElementById("answer").classList.remove("updating");
    }
  }

  form.addEventListener("input", (event) => {
    const { name } = event.target;
    if (bySubmit.includes(name)) return;
    if (models.includes(name) && event.target.value) clearOtherModels(name);
    clearTimeout(waiting);
    waiting = setTimeout(ask, 400);
  });
});
