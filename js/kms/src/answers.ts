// The service's answers in JSON, as the types of this client.

import { KmsError } from "./error.js";

/** When the service rotates a key by itself. */
export interface Rotation {
  maxAgeSeconds?: number;
  maxUses?: number;
}

/**
 * The key that encrypts: the version's own; one that is derived from the context of each request;
 * or such a one where equal plaintexts in one context also have equal ciphertexts, to search for
 * equal values.
 */
export type KeyDerivation = "none" | "per_context" | "convergent";

/** Who must approve each use of a key. */
export interface ApprovalRule {
  /** How many people must approve. */
  threshold: number;
  approvers: Approver[];
  /** For how long approvals count after the request was made. */
  maxSeconds: number;
  /** Whether the person who made a request may be one of those who approve it. */
  requesterMayApprove?: boolean;
}

/** A person whose approval counts. */
export interface Approver {
  /** The name by which the service knows the person: the holder of their tokens. */
  name: string;
  /** The key of Ed25519 that signs their approvals: 32 bytes. */
  publicKey: Uint8Array;
}

/** What a key is to be used for, once. */
export interface ApprovalSubject {
  operation: "sign" | "decrypt";
  /** The BLAKE3 digest of the message or the ciphertext: 64 hexadecimal digits. */
  digest: string;
  /** Its length in bytes. */
  size: number;
  /** The name of the file, if the message is one. Nobody can check it. */
  name?: string;
}

/** A request for approval, and who has decided about it. */
export interface Approval {
  /** For the setting `approval` of {@link Client.sign} and {@link Client.decrypt}. */
  id: string;
  /** The key version to use. */
  key: string;
  /** What it is to be used for. Its operation may be another one than programs ask for. */
  subject: Omit<ApprovalSubject, "operation"> & { operation: ApprovalSubject["operation"] | (string & {}) };
  requester: string;
  /** Why, in the words of the requester. */
  reason: string;
  created: Date;
  expires: Date;
  state: "waiting" | "approved" | "rejected" | "used" | (string & {});
  /** How many people must approve. */
  threshold: number;
  /** The decisions, the first one first. */
  statements: ApprovalStatement[];
  /** What approvers sign: the request as the service wrote it. */
  request: string;
}

/** What an approver said. */
export interface ApprovalStatement {
  approver: string;
  decision: "approve" | "reject" | (string & {});
  signature: Uint8Array<ArrayBuffer>;
}

/** A key to create; without settings, an Ed25519 key without a label. */
export interface NewKey {
  /** A word of the caller's choice, and the second part of the key's id; `files` when absent. */
  purpose?: string;
  /** For example `ml-dsa-65-ed25519`, `aes-256-gcm` or `hmac-sha256`; `ed25519` when absent. */
  algorithm?: string;
  /** A name that is unique within the tenant. */
  label?: string;
  /**
   * Whether its private keys may leave the service, wrapped for a recipient. It cannot be changed
   * later.
   */
  exportable?: boolean;
  /**
   * Whether it signs digests that callers hash themselves, for ECDSA. Such a key signs no
   * statements.
   */
  signsDigests?: boolean;
  /** The key that encrypts, for algorithms that encrypt. It cannot be changed later. */
  derivation?: KeyDerivation;
  rotation?: Rotation;
  /** Who must approve each use of the key. Such a key never loses its rule. */
  approvalRule?: ApprovalRule;
  /**
   * What makes and keeps the private keys: `pkcs11` is the device with which the service was
   * started, `group` the nodes of its settings, of which none has the whole key. In software when
   * absent.
   */
  backend?: string;
}

/** One version of a key. */
export interface KeyVersion {
  /** The key version id: the key id, and `/vN`. */
  id: string;
  version: number;
  /** Null if the algorithm is symmetric. */
  publicKey: Uint8Array<ArrayBuffer> | null;
  created: Date;
  /** When the next version took its place; null for the latest. */
  retired: Date | null;
  state: "usable" | "revoked" | "destroyed" | (string & {});
  origin: "generated" | "imported" | "public_only" | (string & {});
}

/** A key, without its private keys. */
export interface Key {
  /** The key id: `TENANT/PURPOSE/ALGORITHM/UUID`. */
  id: string;
  label: string | null;
  algorithm: string;
  state: "enabled" | "disabled" | "pending_destruction" | "destroyed" | (string & {});
  revision: number;
  backend: string;
  exportable: boolean;
  /** Whether it signs digests, and so no statements. */
  signsDigests: boolean;
  minimumVersion: number;
  /** The key that encrypts, for algorithms that encrypt. */
  derivation: KeyDerivation | (string & {});
  rotation: Rotation;
  /** Who must approve each use of the key; null if nobody must. */
  approvalRule: ApprovalRule | null;
  /** The number of the latest version, the one that signs, encrypts or makes MACs. */
  latestVersion: number;
  versions: KeyVersion[];
}

/** A signature, and the key version that made it. */
export interface Signature {
  /** The key version id: `verify` takes it as a key. */
  key: string;
  version: number;
  signature: Uint8Array<ArrayBuffer>;
}

/** A JWT that the service signed. */
export interface SignedJwt {
  /** The key version id of the version that signed, which is also the JWT's `kid`. */
  key: string;
  version: number;
  /** The JWT in the compact form. It works for anyone who holds it. */
  jwt: string;
  /** Its claim `jti`. */
  id: string;
  expires: Date;
}

/** What the service gave for a JWT. */
export interface LoginToken {
  /** For {@link ClientOptions.token}. The service does not keep it. */
  token: string;
  /** The id that revokes the token, and all tokens that are made from it. */
  revocationId: string;
  expires: Date;
  /** The caller's name in the audit log. */
  holder: string;
  /** What the token permits. */
  operations: string[];
}

/** A ciphertext, and the key version that made it. */
export interface Ciphertext {
  /** The key version id. */
  key: string;
  version: number;
  ciphertext: Uint8Array<ArrayBuffer>;
}

/**
 * A decrypted plaintext, and the key version that decrypted it. JavaScript cannot wipe memory for
 * certain: fill `plaintext` with zeros after its last use.
 */
export interface Plaintext {
  /** The key version id. */
  key: string;
  version: number;
  plaintext: Uint8Array<ArrayBuffer>;
}

/** A key that encrypts data outside the service, and the same key encrypted. */
export interface DataKey extends Ciphertext {
  /**
   * The data key. Keep `ciphertext` beside the data, and fill this with zeros after its last use.
   */
  plaintext: Uint8Array<ArrayBuffer>;
}

/** A message authentication code (MAC), and the key version that made it. */
export interface Mac {
  /** The key version id: `verifyMac` takes it as a key. */
  key: string;
  version: number;
  mac: Uint8Array<ArrayBuffer>;
}

/** A verdict. Where nothing could be verified, it is not valid, and `error` says why. */
export interface Verdict {
  valid: boolean;
  error?: KmsError;
}

/** One entry of the audit log. */
export interface AuditEntry {
  /** Entries have numbers from 0 without gaps. */
  number: number;
  time: Date;
  /** The caller, person or program on whose behalf it was done. */
  actor: string;
  operation: string;
  /** The key or the key version that was used; null if there was none. */
  key: string | null;
  /** The BLAKE3 digest of the message, in hexadecimal. */
  digest: string | null;
  /** `ok`, a verdict, or the code of an error. */
  result: string;
  /** The entry's line in the log. */
  line: string;
}

/** A page of a list. */
export interface Page<T> {
  items: T[];
  /** The parameter `after` of the next page; undefined on the last. */
  next: string | number | undefined;
}

/** An object in JSON. Its readers refuse values of other types. */
export class Answer {
  readonly #fields: Record<string, unknown>;

  constructor(value: unknown) {
    if (typeof value !== "object" || value === null) throw unexpected("an object");
    this.#fields = value as Record<string, unknown>;
  }

  text(name: string): string {
    const value = this.#fields[name];
    if (typeof value !== "string") throw unexpected(`a text in ${name}`);
    return value;
  }

  textOrNull(name: string): string | null {
    return this.#fields[name] == null ? null : this.text(name);
  }

  number(name: string): number {
    const value = this.#fields[name];
    if (typeof value !== "number") throw unexpected(`a number in ${name}`);
    return value;
  }

  numberOrNothing(name: string): number | undefined {
    return this.#fields[name] == null ? undefined : this.number(name);
  }

  /** Nothing but `true` is true. */
  isTrue(name: string): boolean {
    return this.#fields[name] === true;
  }

  bytes(name: string): Uint8Array<ArrayBuffer> {
    try {
      return Uint8Array.from(atob(this.text(name)), (character) => character.charCodeAt(0));
    } catch (cause) {
      throw cause instanceof KmsError ? cause : unexpected(`base64 in ${name}`, cause);
    }
  }

  texts(name: string): string[] {
    const value = this.#fields[name];
    if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) throw unexpected(`texts in ${name}`);
    return value;
  }

  list<T>(name: string, read: (item: Answer) => T): T[] {
    const value = this.#fields[name];
    if (!Array.isArray(value)) throw unexpected(`a list in ${name}`);
    return value.map((item) => read(new Answer(item)));
  }

  object(name: string): Answer {
    return new Answer(this.#fields[name]);
  }

  /** As JSON without white space, its fields in the order of the answer. */
  json(): string {
    return JSON.stringify(this.#fields);
  }

  part(name: string): Answer | undefined {
    const value = this.#fields[name];
    return value == null ? undefined : new Answer(value);
  }
}

function unexpected(expected: string, cause?: unknown): KmsError {
  return new KmsError(`the service's answer is not what this client expects: it has not ${expected}`, { code: "unexpected_answer", cause });
}

export function keyOf(said: Answer): Key {
  const rotation = said.part("rotation");
  const [maxAgeSeconds, maxUses] = [rotation?.numberOrNothing("max_age_seconds"), rotation?.numberOrNothing("max_uses")];
  return {
    id: said.text("key"),
    label: said.textOrNull("label"),
    algorithm: said.text("algorithm"),
    state: said.text("state"),
    revision: said.number("revision"),
    backend: said.text("backend"),
    exportable: said.isTrue("exportable"),
    signsDigests: said.isTrue("signs_digests"),
    minimumVersion: said.number("minimum_version"),
    derivation: said.textOrNull("derivation") ?? "none",
    rotation: { ...(maxAgeSeconds === undefined ? {} : { maxAgeSeconds }), ...(maxUses === undefined ? {} : { maxUses }) },
    approvalRule: approvalRuleOf(said.part("approval_rule")),
    latestVersion: said.number("head"),
    versions: said.list("versions", versionOf),
  };
}

function approvalRuleOf(said: Answer | undefined): ApprovalRule | null {
  if (said === undefined) return null;
  const approverOf = (one: Answer) => ({ name: one.text("name"), publicKey: one.bytes("public_key") });
  return {
    threshold: said.number("threshold"),
    approvers: said.list("approvers", approverOf),
    maxSeconds: said.number("max_seconds"),
    requesterMayApprove: said.isTrue("requester_may_approve"),
  };
}

export function approvalOf(said: Answer): Approval {
  const request = said.object("request");
  const subject = request.object("subject");
  const name = subject.textOrNull("name");
  const statementOf = (one: Answer) => ({ approver: one.text("approver"), decision: one.text("decision"), signature: one.bytes("signature") });
  return {
    id: request.text("id"),
    key: request.text("key"),
    subject: {
      operation: subject.text("operation"),
      digest: subject.textOrNull("digest") ?? "",
      size: subject.numberOrNothing("size") ?? 0,
      ...(name === null ? {} : { name }),
    },
    requester: request.text("requester"),
    reason: request.text("reason"),
    created: new Date(request.text("created")),
    expires: new Date(request.text("expires")),
    state: said.text("state"),
    threshold: said.number("threshold"),
    statements: said.list("statements", statementOf),
    request: request.json(),
  };
}

function versionOf(said: Answer): KeyVersion {
  const retired = said.textOrNull("retired");
  return {
    id: said.text("id"),
    version: said.number("version"),
    publicKey: said.textOrNull("public_key") === null ? null : said.bytes("public_key"),
    created: new Date(said.text("created")),
    retired: retired === null ? null : new Date(retired),
    state: said.text("state"),
    origin: said.text("origin"),
  };
}

/** The page of keys in an answer. */
export function keyPageOf(said: Answer): Page<Key> {
  return { items: said.list("keys", keyOf), next: said.textOrNull("next") ?? undefined };
}

/** The page of requests for approval in an answer. */
export function approvalPageOf(said: Answer): Page<Approval> {
  return { items: said.list("approvals", approvalOf), next: said.textOrNull("next") ?? undefined };
}

/** The page of entries in an answer. */
export function entryPageOf(said: Answer): Page<AuditEntry> {
  return { items: said.list("entries", entryOf), next: said.numberOrNothing("next") };
}

function entryOf(said: Answer): AuditEntry {
  return {
    number: said.number("number"),
    time: new Date(said.text("time")),
    actor: said.text("who"),
    operation: said.text("operation"),
    key: said.textOrNull("key"),
    digest: said.textOrNull("digest"),
    result: said.text("result"),
    line: said.text("line"),
  };
}

export function signatureOf(said: Answer): Signature {
  return { key: said.text("key"), version: said.number("version"), signature: said.bytes("signature") };
}

export function loginTokenOf(said: Answer): LoginToken {
  const [token, revocationId, expires] = [said.text("token"), said.text("revocation_id"), new Date(said.text("expires"))];
  return { token, revocationId, expires, holder: said.text("holder"), operations: said.texts("operations") };
}

export function signedJwtOf(said: Answer): SignedJwt {
  const [key, jwt, id, expires] = [said.text("key"), said.text("jwt"), said.text("id"), new Date(said.text("expires"))];
  return { key, version: said.number("version"), jwt, id, expires };
}

export function ciphertextOf(said: Answer): Ciphertext {
  return { key: said.text("key"), version: said.number("version"), ciphertext: said.bytes("ciphertext") };
}

export function plaintextOf(said: Answer): Plaintext {
  return { key: said.text("key"), version: said.number("version"), plaintext: said.bytes("plaintext") };
}

export function dataKeyOf(said: Answer): DataKey {
  return { ...ciphertextOf(said), plaintext: said.bytes("plaintext") };
}

export function macOf(said: Answer): Mac {
  return { key: said.text("key"), version: said.number("version"), mac: said.bytes("mac") };
}

/** The error in an answer, if it has a code. */
export function refusalOf(said: Answer, status = 200, requestId?: string): KmsError | undefined {
  const code = said.textOrNull("code");
  if (code === null) return undefined;
  return new KmsError(said.textOrNull("message") ?? code, { code, retryable: said.isTrue("retryable"), status, requestId });
}

/** The request that creates a key. */
export function newKeyText({ signsDigests, rotation, approvalRule, ...same }: NewKey): object {
  return {
    ...same,
    ...(approvalRule === undefined ? {} : { approval_rule: approvalRuleText(approvalRule) }),
    ...(signsDigests === undefined ? {} : { signs_digests: signsDigests }),
    ...(rotation === undefined ? {} : { rotation: { max_age_seconds: rotation.maxAgeSeconds, max_uses: rotation.maxUses } }),
  };
}

function approvalRuleText({ threshold, approvers, maxSeconds, requesterMayApprove }: ApprovalRule): object {
  return {
    threshold,
    approvers: approvers.map(({ name, publicKey }) => ({ name, public_key: base64(publicKey) })),
    max_seconds: maxSeconds,
    requester_may_approve: requesterMayApprove,
  };
}

/** The number of bytes that become text at once: a multiple of 3, so that no piece is padded. */
const PIECE_LEN = 12288;

/** Bytes in base64 with padding (RFC 4648, section 4). */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += PIECE_LEN) {
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + PIECE_LEN)));
  }
  return text;
}
