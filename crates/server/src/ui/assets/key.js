// One key: what it is, its versions, and what can be done with it.

import { keys } from "./api.js";
import * as actions from "./actions.js";
import { announce, button, copyButton, facts, h, notice, section, table } from "./dom.js";
import { ageOf, duration, nameOf, time, words } from "./format.js";
import { headOf, problem, rotationText, stateTag } from "./keys.js";
import { may } from "./session.js";

/** The view of the key with that name. */
export function keyView(name) {
  const body = h("div", {}, h("h1", { tabindex: -1 }, "Key"), h("p", { class: "about" }, "Loading…"));
  const show = (key, focused = null) => {
    body.replaceChildren(...content(key, act));
    document.title = `${nameOf(key)} – bulla`;
    // The focus was on a button that may be gone.
    if (focused !== null) (body.querySelector(`[data-action="${focused}"]`) ?? body.querySelector("h1")).focus();
  };
  async function act(action, key) {
    const changed = await actions[action](key);
    if (changed === null) return;
    show(changed.key, action);
    announce(changed.said);
  }
  keys.read(name).then((key) => {
    const held = body.contains(document.activeElement);
    show(key);
    if (held) body.querySelector("h1").focus({ preventScroll: true });
  }, (error) => body.replaceChildren(backLink(), h("h1", { tabindex: -1 }, "Key"), problem(error)));
  return body;
}

const backLink = () => h("p", { class: "back" }, h("a", { href: "#/keys" }, h("span", { "aria-hidden": "true" }, "← "), "All keys"));

function content(key, act) {
  const head = headOf(key);
  return [
    backLink(),
    h("div", { class: "title" }, h("h1", { tabindex: -1 }, nameOf(key)), stateTag(key.state)),
    standing(key),
    buttons(key, act),
    facts(
      ["Name", h("code", {}, key.key), " ", copyButton(key.key, "the key's name")],
      ["Label", key.label ?? "none"],
      ["Algorithm", h("code", {}, key.algorithm)],
      ["Signs with", head ? `version ${key.head}, ${duration(ageOf(head.created))} old` : "no version"],
      ["Verifies from", `version ${key.minimum_version}`],
      ["Rotation", rotationText(key.rotation)],
      ["Private keys", `in the backend ${key.backend}, ${key.exportable ? "may be exported" : "cannot be exported"}`],
      ["Revision", String(key.revision)],
    ),
    section("Versions", versions(key)),
  ].filter((part) => part !== null);
}

/** What the key's state means for its user. */
function standing(key) {
  switch (key.state) {
    case "disabled":
      return notice("info", h("p", {}, "The key does not sign. Its signatures still verify."));
    case "pending_destruction":
      return notice("bad", h("p", {}, `The private keys may be destroyed after ${time(key.destroy_after)}. The key does not sign. Until then, its destruction can be canceled.`));
    case "destroyed":
      return notice("info", h("p", {}, "The private keys are destroyed. The signatures still verify."));
    default:
      return null;
  }
}

/** What can be done in the key's state, as far as the caller may. */
function buttons(key, act) {
  const offered = [];
  const offer = (action, text, operation, attributes = {}) => {
    if (may(operation)) offered.push(button(text, () => act(action, key), { "data-action": action, ...attributes }));
  };
  if (key.state === "enabled") offer("rotate", "Rotate", "rotate", { class: "primary" });
  if (key.state === "enabled") offer("disable", "Disable", "update");
  if (key.state === "disabled") offer("enable", "Enable", "update", { class: "primary" });
  if (key.state === "enabled" || key.state === "disabled") {
    offer("relabel", "Change label", "update");
    offer("changeRotation", "Rotation policy", "update");
    if (key.head > 1) offer("changeMinimum", "Minimum version", "update");
    offer("schedule", "Schedule destruction", "destroy", { class: "danger" });
  }
  if (key.state === "pending_destruction") offer("cancelDestruction", "Cancel destruction", "restore", { class: "primary" });
  return offered.length === 0 ? null : h("div", { class: "actions", role: "group", "aria-label": "Actions" }, offered);
}

const COLUMNS = [{ name: "Version" }, { name: "State" }, { name: "Public key" }, { name: "Created" }, { name: "Retired" }, { name: "Origin" }];

function versions(key) {
  const rows = [...key.versions].reverse().map((version) => [
    h("span", {}, String(version.version), version.version === key.head ? h("span", { class: "tag" }, "signs") : null,
      version.version < key.minimum_version ? h("span", { class: "tag off" }, "does not verify") : null),
    stateTag(version.state),
    h("span", { class: "public" }, h("code", { title: "Base64" }, version.public_key), copyButton(version.public_key, `the public key of version ${version.version}`)),
    h("time", { datetime: version.created }, time(version.created)),
    version.retired ? h("time", { datetime: version.retired }, time(version.retired)) : "–",
    words(version.origin),
  ]);
  return table("Versions, the newest first", COLUMNS, rows);
}
