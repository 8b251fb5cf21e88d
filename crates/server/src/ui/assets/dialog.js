// Dialogs: the browser keeps the focus inside, and Escape closes.

import { announce, button, field, fresh, h } from "./dom.js";

/**
 * Asks before something is done, and does it.
 *
 * `typed` is a text that the user must type first. `run` gets the form; what it throws is shown,
 * and the dialog stays open. The result is what `run` returned, or null where the user canceled.
 */
export function ask({ title, content = [], action, danger = false, typed = null, run }) {
  return new Promise((resolve) => {
    const [name, wrong] = [fresh("dialog"), h("p", { class: "wrong", role: "alert" })];
    const cancel = button("Cancel", () => dialog.close());
    const confirm = h("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
    const proof = typed === null ? null : typedField(typed, confirm);
    let result = null;
    const form = h("form", { method: "dialog", novalidate: true, onsubmit: async (event) => {
      event.preventDefault();
      if (confirm.disabled) return;
      wrong.textContent = "";
      confirm.disabled = true;
      confirm.textContent = "Working…";
      try {
        result = await run(form);
        dialog.close();
      } catch (error) {
        wrong.textContent = error.message;
      }
      confirm.disabled = false;
      confirm.textContent = action;
    } }, h("h2", { id: name }, title), ...content, proof, wrong,
    h("div", { class: "buttons" }, cancel, confirm));
    const dialog = h("dialog", { "aria-labelledby": name, onclose: () => {
      dialog.remove();
      resolve(result);
    } }, form);
    document.body.append(dialog);
    dialog.showModal();
    (form.querySelector("input, select") ?? (danger ? cancel : confirm)).focus();
  });
}

function typedField(typed, confirm) {
  const input = h("input", { type: "text", name: "typed", autocomplete: "off", autocapitalize: "none", spellcheck: "false" });
  confirm.disabled = true;
  input.addEventListener("input", () => {
    const ready = input.value === typed;
    if (ready && confirm.disabled) announce("The confirmation is complete.");
    confirm.disabled = !ready;
  });
  return field(["Type ", h("code", {}, typed), " to confirm"], input);
}
