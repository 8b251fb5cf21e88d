// Who uses the page, and what they may do.

import * as api from "./api.js";

/** What the credential permits; null where the service does not say. */
let permissions = null;

export const self = () => permissions;

/** Whether the caller may do an operation, as far as the page knows. The service decides. */
export function may(operation) {
  return permissions === null || permissions.operations.includes(operation);
}

async function learn() {
  try {
    permissions = await api.json("api/v1/tokens/self");
  } catch (error) {
    if (!error.isAbsent) throw error;
    permissions = null;
    // This shows, too, whether the service takes the credential.
    await api.keys.page(undefined, 1);
  }
}

/**
 * Whether the connection alone identifies the caller: in development, or by a client certificate.
 */
export async function needsNoCredential() {
  try {
    await learn();
    return true;
  } catch (error) {
    if (error.isRefused) return false;
    throw error;
  }
}

/** Signs in with a token. A token that the service refuses is forgotten at once. */
export async function signIn(token) {
  api.useCredential(token);
  try {
    await learn();
  } catch (error) {
    signOut();
    throw error;
  }
}

export function signOut() {
  api.useCredential(null);
  permissions = null;
}
