// A market page: the book is asked for again while somebody looks, and a price in the ladder fills the ticket.
// A rental's page is asked for again in the same way.
// htmx does the asking; what is decided here is when, and that an unchanged book moves nothing.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const live = document.getElementById("live");
  const ticket = document.getElementById("ticket-form");
  const secrets = ["csrfmiddlewaretoken"];
  let opened = []; // folds that were open before what is in there was swapped

  function isBusy() {
    const at = document.activeElement;
    return document.hidden || (at && (live.contains(at) || at.closest("form")));
  }

  document.addEventListener("htmx:config:request", (event) => {
    const { sourceElement, request } = event.detail.ctx;
    if (sourceElement === live) {
      if (isBusy()) event.preventDefault();
      else request.headers["If-None-Match"] = live.dataset.etag;
    }
    secrets.forEach((name) => request.body.delete(name));
  });

  document.addEventListener("htmx:before:response", (event) => {
    const { sourceElement, response } = event.detail.ctx;
    if (response.status !== 200) event.preventDefault(); // unchanged, or not to be had: what is there stays
    else if (sourceElement === live) live.dataset.etag = response.headers.get("ETag") || "";
  });

  document.addEventListener("htmx:before:swap", () => {
    const price = live.querySelector(".hero .price");
    live.dataset.price = price ? price.textContent.trim() : "";
    live.classList.remove("ticked");
    opened = [...live.querySelectorAll("details[open][id]")].map((fold) => fold.id);
  });

  document.addEventListener("htmx:after:swap", () => {
    opened.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    const price = live.querySelector(".hero .price");
    live.classList.toggle("ticked", Boolean(price) && price.textContent.trim() !== live.dataset.price);
  });

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) live.dispatchEvent(new Event("look"));
  });

  live.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-price]");
    if (!link || !ticket || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    ticket.elements.kind.value = "limit";
    ticket.elements.price.value = link.dataset.price;
    ticket.elements.price.focus();
    ticket.dispatchEvent(new Event("input", { bubbles: true }));
  });
});
