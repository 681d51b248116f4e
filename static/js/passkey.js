// Passkeys: a form with [data-passkey] is sent once the browser has made ("create") or used ("get") one.
// What to ask the browser for stands in the page (an element named by data-source) or at an address (data-options), to
// which the form is then sent.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const isKnown = window.PublicKeyCredential && "parseRequestOptionsFromJSON" in PublicKeyCredential;

  async function optionsOf(form) {
    if (form.dataset.source) return JSON.parse(document.getElementById(form.dataset.source).textContent);
    const answer = await fetch(form.dataset.options, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`${answer.status}`);
    return answer.json();
  }

  async function create(options) {
    const asked = options.creation_options.publicKey;
    // It shall be enough to sign in with: kept on the device, and used by its owner alone.
    Object.assign(asked.authenticatorSelection, {
      residentKey: "required",
      requireResidentKey: true,
      userVerification: "required",
    });
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(asked) });
  }

  async function get(options) {
    const asked = options.request_options.publicKey;
    return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(asked) });
  }

  for (const form of isKnown ? document.querySelectorAll("form[data-passkey]") : []) {
    const button = form.querySelector(".passkey button");
    const error = form.querySelector("[data-passkey-error]");
    button.disabled = false;
    button.classList.add("on");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      error.hidden = true;
      try {
        const options = await optionsOf(form);
        const credential = await (form.dataset.passkey === "create" ? create(options) : get(options));
        if (form.dataset.options) form.action = form.dataset.options;
        form.elements.credential.value = JSON.stringify(credential);
        form.submit();
      } catch {
        error.textContent = error.dataset.passkeyError; // cancelled, timed out, or not one of this site's
        error.hidden = false;
        button.disabled = false;
      }
    });
  }
});
