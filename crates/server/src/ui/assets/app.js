// The page: which view is shown, who is signed in, and whether the service is ready.

import { accessView, signInView } from "./signin.js";
import { activityView, forget } from "./activity.js";
import * as api from "./api.js";
import { auditView } from "./audit.js";
import { announce, byId, button, h } from "./dom.js";
import { keyView } from "./key.js";
import { keysView, problem } from "./keys.js";
import * as session from "./session.js";

const HEALTH_EVERY = 5000;
const TITLES = { keys: "Keys", key: "Key", activity: "Activity", audit: "Audit log", access: "Access" };

let isIn = false;
let stop = null;
let health = null;

const go = (hash) => { location.hash = hash; };

/** The view that the address names: `#/keys/NAME`. */
function place() {
  const [view, name] = location.hash.replace(/^#\//, "").split("/");
  if (view === "keys" && name) return { view: "key", name: decoded(name) };
  return { view: view in TITLES ? view : "keys" };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function viewOf({ view, name }) {
  switch (view) {
    case "key":
      return { view: keyView(name) };
    case "activity":
      return activityView();
    case "audit":
      return { view: auditView() };
    case "access":
      return { view: accessView(leave) };
    default:
      return { view: keysView(go) };
  }
}

/**
 * Shows the view of the address. Moving the focus there tells a screen reader that the page has
 * changed.
 */
function show({ moved = true } = {}) {
  stop?.();
  stop = null;
  const shown = isIn ? place() : null;
  const made = isIn ? viewOf(shown) : { view: signInView(enter) };
  stop = made.stop ?? null;
  byId("content").replaceChildren(made.view);
  byId("nav").hidden = !isIn;
  byId("sign-out").hidden = !isIn || !api.hasCredential();
  document.title = `${isIn ? TITLES[shown.view] : "Sign in"} – bulla`;
  for (const link of byId("nav").querySelectorAll("a")) {
    const isHere = isIn && (link.dataset.view === shown.view || (link.dataset.view === "keys" && shown.view === "key"));
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (moved) {
    byId("content").querySelector("h1")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function enter() {
  isIn = true;
  show();
}

function leave() {
  session.signOut();
  forget();
  isIn = false;
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  announce("Signed out");
  begin();
}

/** Whether the service answers and can sign. */
async function checkHealth() {
  const found = await api.readiness().then(({ sealed }) => (sealed ? "sealed" : "ready"), () => "unreachable");
  if (found !== health) {
    const before = health;
    health = found;
    byId("health").dataset.health = found;
    const texts = { ready: "Ready", sealed: "Sealed", unreachable: "Not reachable" };
    byId("health-text").textContent = texts[found];
    // The first answer decides what to show. Later, what could not be shown before may be shown
    // now.
    if (before === null || found === "ready") begin();
  }
  setTimeout(checkHealth, HEALTH_EVERY);
}

/**
 * The first view: that of the address, where the connection identifies the caller, or the form that
 * takes a token.
 */
async function begin() {
  const moved = document.activeElement !== document.body;
  if (health === "sealed") {
    showInstead("The service is sealed", h("p", {}, "Its keystore is closed. An operator must unseal it. This page goes on by itself then."));
    return;
  }
  try {
    isIn = api.hasCredential() || await session.needsNoCredential();
    show({ moved });
  } catch (error) {
    showInstead("Nothing to show", problem(error), button("Try again", begin));
  }
}

function showInstead(title, ...parts) {
  stop?.();
  stop = null;
  byId("nav").hidden = byId("sign-out").hidden = true;
  document.title = `${title} – bulla`;
  byId("content").replaceChildren(h("div", { class: "narrow" }, h("h1", { tabindex: -1 }, title), ...parts));
}

addEventListener("hashchange", () => {
  // Without the navigation there is the form or a problem, which the address does not change.
  if (!byId("nav").hidden) show();
});
addEventListener("unhandledrejection", (event) => announce(String(event.reason?.message ?? "Something failed"), { urgent: true }));
byId("sign-out").addEventListener("click", leave);
byId("development").hidden = document.documentElement.dataset.mode !== "development";
api.json("api/v1/health").then(({ version }) => { byId("version").textContent = String(version); }, () => {});
checkHealth();
