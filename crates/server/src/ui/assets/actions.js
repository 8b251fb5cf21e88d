// What can be done with keys: each asks first.
//
// A change names the revision that the user saw, so that it does not undo what another operator did
// meanwhile.

import { keys } from "./api.js";
import { ask } from "./dialog.js";
import { field, h } from "./dom.js";
import { nameOf, time } from "./format.js";

/** The algorithms, by what they do. */
const ALGORITHMS = {
  "Signatures": ["ed25519", "ecdsa-p256", "ecdsa-p384", "ecdsa-p521", "ml-dsa-44", "ml-dsa-65", "ml-dsa-87", "ml-dsa-65-ed25519"],
  "Signatures and encryption": ["rsa-2048", "rsa-3072", "rsa-4096"],
  "Hash-based signatures": ["sha2", "shake"].flatMap((hash) => [128, 192, 256].flatMap((bits) => ["s", "f"].map((kind) => `slh-dsa-${hash}-${bits}${kind}`))),
  "Key encapsulation": ["x-wing", "ml-kem-512", "ml-kem-768", "ml-kem-1024"],
  "Key agreement": ["ecdh-p256", "ecdh-p384", "ecdh-p521", "x25519"],
  "Encryption": ["aes-256-gcm", "aes-128-gcm", "chacha20-poly1305", "xchacha20-poly1305"],
  "Message authentication": ["hmac-sha256", "hmac-sha384", "hmac-sha512", "blake3"],
};

const paragraph = (text) => h("p", {}, text);
const plain = { autocomplete: "off", autocapitalize: "none", spellcheck: "false" };

/** A whole number from a field, or undefined where it is empty.
 * @throws where it is neither */
function whole(form, name, what) {
  const text = form.elements.namedItem(name).value.trim();
  if (text === "") return undefined;
  if (!/^[1-9][0-9]{0,14}$/.test(text)) throw new Error(`${what}: enter a whole number from 1, or nothing.`);
  return Number(text);
}

const value = (form, name) => form.elements.namedItem(name).value.trim();

function rotationFields(rotation = {}) {
  const days = rotation.max_age_seconds ? String(rotation.max_age_seconds / 86_400) : "";
  return [
    field("Rotate after days", h("input", { ...plain, name: "days", inputmode: "numeric", value: days }), "Empty: age does not matter."),
    field("Rotate after signatures", h("input", { ...plain, name: "uses", inputmode: "numeric", value: rotation.max_uses ?? "" }), "Empty: the number of signatures does not matter."),
  ];
}

function rotationOf(form, before = {}) {
  const typed = value(form, "days");
  // An age that is no whole number of days stays as it is, unless the user types another.
  const kept = before.max_age_seconds && typed === String(before.max_age_seconds / 86_400);
  const days = kept ? undefined : whole(form, "days", "Days");
  const uses = whole(form, "uses", "Signatures");
  const age = kept ? before.max_age_seconds : days && days * 86_400;
  return { ...(age && { max_age_seconds: age }), ...(uses && { max_uses: uses }) };
}

/** Creates a key. The result is the key, or null where the user canceled. */
export function createKey() {
  const groups = Object.entries(ALGORITHMS).map(([label, names]) => h("optgroup", { label }, names.map((name) => h("option", { value: name }, name))));
  const exportable = h("input", { type: "checkbox", name: "exportable", id: "exportable", "aria-describedby": "exportable-about" });
  return ask({
    title: "Create a key",
    content: [
      field("Label", h("input", { ...plain, name: "label" }), "a to z, 0 to 9, and - _ . after the first. No other key has it. May be empty."),
      field("Purpose", h("input", { ...plain, name: "purpose", value: "files" }), "What the key is for. It cannot be changed later."),
      field("Algorithm", h("select", { name: "algorithm" }, groups)),
      ...rotationFields(),
      h("div", { class: "field check" }, exportable, h("label", { for: "exportable" }, "The private keys may be exported"),
        h("p", { class: "about", id: "exportable-about" }, "It cannot be changed later.")),
    ],
    action: "Create",
    run: (form) => {
      const [label, rotation] = [value(form, "label"), rotationOf(form)];
      const body = { purpose: value(form, "purpose"), algorithm: value(form, "algorithm"), exportable: exportable.checked };
      return keys.create({ ...body, ...(label !== "" && { label }), ...(Object.keys(rotation).length > 0 && { rotation }) });
    },
  });
}

/** Asks, does it, and says what was done. */
async function change(key, said, question) {
  const changed = await ask(question);
  return changed === null ? null : { key: changed, said };
}

export const rotate = (key) => change(key, "The key is rotated", {
  title: `Rotate ${nameOf(key)}?`,
  content: [paragraph(`Version ${key.head + 1} signs from now on. Version ${key.head} still verifies. This cannot be undone.`)],
  action: "Rotate",
  run: () => keys.rotate(key.key),
});

export const disable = (key) => change(key, "The key is disabled", {
  title: `Disable ${nameOf(key)}?`,
  content: [paragraph("Callers can no longer sign with it. Its signatures still verify. You can enable it again.")],
  action: "Disable",
  danger: true,
  run: () => keys.update(key.key, { revision: key.revision, enabled: false }),
});

export const enable = (key) => change(key, "The key is enabled", {
  title: `Enable ${nameOf(key)}?`,
  content: [paragraph(`Callers can sign with version ${key.head} again.`)],
  action: "Enable",
  run: () => keys.update(key.key, { revision: key.revision, enabled: true }),
});

export const relabel = (key) => change(key, "The label is changed", {
  title: `Change the label of ${nameOf(key)}`,
  content: [field("Label", h("input", { ...plain, name: "label", value: key.label ?? "" }), "Callers that name the key by the old label are refused. Empty: the key has no label.")],
  action: "Change",
  run: (form) => keys.update(key.key, { revision: key.revision, label: value(form, "label") }),
});

export const changeRotation = (key) => change(key, "The rotation policy is changed", {
  title: `Rotation policy of ${nameOf(key)}`,
  content: [paragraph("The keystore rotates the key by itself when one of these is reached."), ...rotationFields(key.rotation)],
  action: "Change",
  run: (form) => keys.update(key.key, { revision: key.revision, rotation: rotationOf(form, key.rotation) }),
});

export const changeMinimum = (key) => change(key, "The minimum version is changed", {
  title: `Minimum version of ${nameOf(key)}`,
  content: [field("Oldest version that verifies", h("select", { name: "minimum" }, key.versions.map(({ version }) =>
    h("option", { value: version, selected: version === key.minimum_version }, `Version ${version}`))),
  "Signatures of older versions are refused from now on.")],
  action: "Change",
  run: (form) => keys.update(key.key, { revision: key.revision, minimum_version: Number(value(form, "minimum")) }),
});

export const schedule = (key) => change(key, "The destruction is scheduled", {
  title: `Schedule the destruction of ${nameOf(key)}`,
  content: [
    paragraph("The key does not sign from now on. You can cancel its destruction for the number of days below. After that, its private keys can be destroyed for good."),
    field("Days until destruction", h("input", { ...plain, name: "wait", inputmode: "numeric", value: "30" })),
  ],
  action: "Schedule destruction",
  danger: true,
  typed: nameOf(key),
  run: (form) => {
    const days = whole(form, "wait", "Days until destruction");
    if (days === undefined || days > 36_500) throw new Error("Days until destruction: enter a whole number from 1 to 36500.");
    return keys.schedule(key.key, new Date(Date.now() + days * 86_400_000).toISOString());
  },
});

export const cancelDestruction = (key) => change(key, "The destruction is canceled, and the key is disabled", {
  title: `Cancel the destruction of ${nameOf(key)}?`,
  content: [paragraph(`This cancels the destruction after ${time(key.destroy_after)}. The key is disabled then: enable it to sign with it.`)],
  action: "Cancel destruction",
  typed: nameOf(key),
  run: () => keys.cancelDestruction(key.key),
});
