// The service's API. The credential is in this module's memory only: no storage, no cookie, no
// address has it.

const ROOT = new URL("../", import.meta.url);

let credential = null;

/** Sends `Authorization: Bearer TOKEN` from now on; nothing where it is null. */
export function useCredential(token) {
  credential = token;
}

export const hasCredential = () => credential !== null;

/** What the service, or the way to it, refused. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** Whether the caller may not do it. */
  get isRefused() {
    return this.status === 401 || this.status === 403;
  }

  /** Whether this service does not have it. */
  get isAbsent() {
    return ["endpoint_not_found", "not_supported", "no_audit_log"].includes(this.code);
  }
}

async function ask(path, { method = "GET", body } = {}) {
  const headers = {};
  if (credential !== null) headers["Authorization"] = `Bearer ${credential}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const how = { method, headers, cache: "no-store", credentials: "same-origin", redirect: "error" };
  if (body !== undefined) how.body = JSON.stringify(body);
  try {
    return await fetch(new URL(path, ROOT), how);
  } catch {
    throw new ApiError(0, "unreachable", "The service does not answer. The connection may be lost.");
  }
}

async function failure(response) {
  const body = await response.json().catch(() => ({}));
  const code = typeof body.code === "string" ? body.code : "unknown";
  const message = typeof body.message === "string" ? body.message : `The service answered with the status ${response.status}.`;
  return new ApiError(response.status, code, message);
}

/** The answer's JSON. */
export async function json(path, how) {
  const response = await ask(path, how);
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** The answer's text. */
export async function text(path) {
  const response = await ask(path);
  if (!response.ok) throw await failure(response);
  return response.text();
}

/** Whether the service is ready; this needs no credential. */
export async function readiness() {
  const response = await ask("api/v1/ready");
  return response.json();
}

/** A query, without what is undefined. */
export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

const keyPath = (key) => `api/v1/keys/${encodeURIComponent(key)}`;

export const keys = {
  page: (after, limit) => json(`api/v1/keys${query({ limit, after })}`),
  read: (key) => json(keyPath(key)),
  create: (body) => json("api/v1/keys", { method: "POST", body }),
  rotate: (key) => json(`${keyPath(key)}/rotate`, { method: "POST" }),
  update: (key, body) => json(keyPath(key), { method: "PATCH", body }),
  schedule: (key, after) => json(`${keyPath(key)}/schedule-destruction`, { method: "POST", body: { after } }),
  cancelDestruction: (key) => json(`${keyPath(key)}/cancel-destruction`, { method: "POST" }),
};
