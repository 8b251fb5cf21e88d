// The form that takes a token, and the page that says what it permits.

import { announce, button, facts, field, h, notice, section } from "./dom.js";
import { time, words } from "./format.js";
import { self, signIn } from "./session.js";
import { hasCredential } from "./api.js";

/** The sign-in form. `done` is called when the service has taken the token. */
export function signInView(done) {
  const token = h("input", { type: "password", name: "token", autocomplete: "off", autocapitalize: "none", spellcheck: "false", required: true });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const submit = h("button", { type: "submit", class: "primary" }, "Sign in");
  const form = h("form", { class: "sign-in", onsubmit: async (event) => {
    event.preventDefault();
    wrong.textContent = "";
    submit.disabled = true;
    try {
      await signIn(cleaned(token.value));
      token.value = "";
      announce("Signed in");
      done();
    } catch (error) {
      wrong.textContent = error.isRefused ? "The service refuses this token. It may be expired, revoked or for another service." : error.message;
      token.focus();
    }
    submit.disabled = false;
  } },
  field("Capability token", token, "Only this tab's memory keeps the token. Reload or close the tab to sign out."), wrong, submit);
  return h("div", { class: "narrow" }, h("h1", { tabindex: -1 }, "Sign in"), form,
    h("p", { class: "about" }, "Mint a token with ", h("code", {}, "bulla token new --operation read --expires 1h"), "."));
}

/** A token as people paste it. What no header can carry would be refused with a worse text. */
function cleaned(text) {
  const token = text.replace(/\s+/g, "");
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error("This is not a token: a token has letters, digits and punctuation only.");
  return token;
}

/** What the caller may do. */
export function accessView(leave) {
  const known = self();
  const how = hasCredential() ? "A capability token" : "The connection itself: no token is needed";
  const leaving = hasCredential() ? button("Sign out", leave) : null;
  const title = h("h1", { tabindex: -1 }, "Access");
  if (known === null) {
    return h("div", {}, title, facts(["Credential", how]),
      notice("info", h("p", {}, "This service does not say what a credential permits. Try what you need: the service refuses what is not permitted.")), leaving);
  }
  const { operations, keys } = known;
  return h("div", {}, title,
    facts(["Credential", how], ["Name in the audit log", known.name], ["Tenant", known.tenant], ["Expires", known.expires ? time(known.expires) : "never"],
      ["Tokens", known.can_mint_tokens ? "may mint tokens, and revoke those of others" : "cannot mint tokens"]),
    section("Operations", operations.length === 0 ? h("p", {}, "None")
      : h("ul", { class: "tags" }, operations.map((operation) => h("li", {}, words(operation))))),
    section("Keys", keys === null ? h("p", {}, "All keys of the tenant, and what concerns no key")
      : h("ul", { class: "names" }, keys.map((key) => h("li", {}, h("a", { href: `#/keys/${encodeURIComponent(key)}` }, h("code", {}, key)))))),
    leaving);
}
