// The client's methods, and the requests that they make.

import {
  Answer,
  type Approval,
  approvalOf,
  approvalPageOf,
  type ApprovalSubject,
  type AuditEntry,
  base64,
  type Ciphertext,
  ciphertextOf,
  type DataKey,
  dataKeyOf,
  entryPageOf,
  type Key,
  keyOf,
  keyPageOf,
  type LoginToken,
  loginTokenOf,
  type Mac,
  macOf,
  type NewKey,
  newKeyText,
  type Page,
  type Plaintext,
  plaintextOf,
  refusalOf,
  type Signature,
  signatureOf,
  type SignedJwt,
  signedJwtOf,
  type Verdict,
} from "./answers.js";
import { BatchError, KmsError } from "./error.js";

/** The settings of a {@link Client}. */
export interface ClientOptions {
  /** A capability token, sent with each request. */
  token?: string;
  /** How the client gets its tokens itself, instead of {@link ClientOptions.token}. */
  login?: LoginOptions;
  /** How often a request is repeated at most; 3 by default. */
  retries?: number;
  /**
   * The longest first pause before a repetition, in milliseconds; 50 by default. It doubles each
   * time.
   */
  backoff?: number;
  /** How long one attempt may take, in milliseconds; 30,000 by default. */
  timeout?: number;
  /**
   * Another `fetch`. In Node, the one of the package `undici` takes a `dispatcher`, which trusts
   * other authorities (`ca`) and shows a client certificate (`cert`, `key`):
   *
   * ```js
   * import { Agent, fetch } from "undici";
   * const dispatcher = new Agent({ connect: { ca, cert, key } });
   * const client = new Client(address, { fetch: (url, init) => fetch(url, { ...init, dispatcher }) });
   * ```
   */
  fetch?: typeof fetch;
}

/**
 * How a client logs in with a JWT of its platform: before its first request, and again when three
 * quarters of the token's lifetime have passed.
 */
export interface LoginOptions {
  /** A role in the service's configuration, which says which JWTs give it. */
  role: string;
  /**
   * Returns a JWT that is valid now, for example the content of the file that Kubernetes renews.
   * What it throws, the call throws.
   */
  jwt: () => string | Promise<string>;
}

/** The settings of one call. */
export interface CallOptions {
  /** Ends the call and its repetitions: the call then fails with the signal's reason. */
  signal?: AbortSignal;
}

/**
 * How a key of ECDSA or RSA signs. Without it, the hash function is that of the curve, SHA-256 for
 * RSA, and the padding is PSS.
 */
export interface SignatureOptions extends CallOptions {
  hash?: "sha256" | "sha384" | "sha512";
  /** For RSA. The salt of PSS is as long as the digest. */
  padding?: "pss" | "pkcs1v15";
}

/** The settings of a call that signs. */
export interface SignOptions extends SignatureOptions {
  /** The id of an approved request of this caller, for a key that is used with approvals. */
  approval?: string;
}

/** The settings of a call that decrypts. */
export interface DecryptOptions extends EncryptionOptions, CallOptions {
  /** The id of an approved request of this caller, for a key that is used with approvals. */
  approval?: string;
}

/** A request for approval to make. */
export interface NewApproval {
  key: string;
  subject: ApprovalSubject;
  /** Why, in one line. Approvers and the audit log see it. */
  reason: string;
  /** For how long the request counts; as long as the key's rule says when absent. */
  expiresInSeconds?: number;
}

/** An approver: their name, and what signs with their key of Ed25519. */
export interface Decider {
  /** The name in the key's rule. */
  approver: string;
  sign: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array | Promise<Uint8Array>;
}

/** The settings of a call that signs a JWT. */
export interface JwtOptions extends CallOptions {
  /** How long the JWT is valid; as long as the service's settings permit when absent. */
  lifetimeSeconds?: number;
}

/** One message to sign. */
export interface SignItem {
  key: string;
  message: Uint8Array;
}

/** One signature to verify. */
export interface VerifyItem {
  key: string;
  message: Uint8Array;
  signature: Uint8Array;
}

/**
 * What an encryption is bound to. Decryption needs the same. It is part of the options of a call,
 * and of an item of a batch.
 */
export interface EncryptionOptions {
  /**
   * Data that must be the same when the ciphertext is decrypted, for example the id of the row that
   * it is in. It is not secret, and not part of the ciphertext.
   */
  associatedData?: Uint8Array;
  /** What the key is derived from, for a key that was made for that ({@link NewKey.derivation}). */
  context?: Uint8Array;
}

/** One plaintext to encrypt. */
export interface EncryptItem extends EncryptionOptions {
  plaintext: Uint8Array;
}

/** One ciphertext to decrypt, or to encrypt again. */
export interface DecryptItem extends EncryptionOptions {
  ciphertext: Uint8Array;
}

/** One message authentication code (MAC) to verify. */
export interface VerifyMacItem {
  message: Uint8Array;
  mac: Uint8Array;
  /** The number of the version that made it; the latest when absent. */
  version?: number;
}

/** The settings of a call for a data key. */
export interface DataKeyOptions extends EncryptionOptions, CallOptions {
  /** The length of the data key in bits; 256 when absent. */
  bits?: 128 | 256 | 512;
}

/** A value, or why there is none: as `Promise.allSettled` says it. */
export type ItemResult<T> = { status: "fulfilled"; value: T } | { status: "rejected"; reason: KmsError };

/** A signature, or why there is none. */
export type SignResult = ItemResult<Signature>;

/** The most items of one request; longer batches are several. */
const MAX_BATCH_ITEMS = 1000;

/** The longest pause for which an answer may ask, in milliseconds. */
const MAX_PAUSE = 30_000;

/** What a request does. The service must recognize repetitions of those that change something. */
type Effect = "reads" | "changes";

interface Request {
  method: string;
  path: string;
  body?: object;
  effect: Effect;
}

/** What an attempt gave: an answer, or an error with the pause that the service asks for. */
type Attempt = { answer: Answer } | { error: unknown; wait: number };

/** A token of a login, and when the next login is due, in milliseconds. */
type CurrentToken = { token: string; renew: number };

const LOGIN_PATH = "/api/v1/login";

/**
 * A client of one service. `await using` closes it at the end of the block.
 *
 * ```js
 * await using client = new Client("http://127.0.0.1:8200", { token });
 * const { signature } = await client.sign("invoices", message);
 * ```
 */
export class Client {
  readonly #base: string;
  readonly #options: Required<Omit<ClientOptions, "token" | "login">>;
  readonly #token: string | undefined;
  readonly #login: LoginOptions | undefined;
  /** The last login. All calls share it. */
  #current: Promise<CurrentToken> | undefined;
  readonly #running = new Map<AbortController, Promise<Answer>>();
  #isClosed = false;

  /**
   * It does not connect yet.
   * @param address the service's address: `https://HOST:PORT`
   * @throws {TypeError} the address is not valid
   */
  constructor(address: string | URL, options: ClientOptions = {}) {
    const { protocol, href } = new URL(address);
    if (protocol !== "http:" && protocol !== "https:") throw new TypeError(`not the address of a service: ${href}`);
    this.#base = href.replace(/\/+$/, "");
    this.#token = options.token?.trim();
    this.#login = options.login;
    const { retries = 3, backoff = 50, timeout = 30_000 } = options;
    this.#options = { retries, backoff, timeout, fetch: options.fetch ?? globalThis.fetch.bind(globalThis) };
  }

  /**
   * Gives a JWT of the platform on which the program runs for a token. The client goes on with its
   * own one: {@link ClientOptions.login} is for clients that log in by themselves.
   */
  async logIn(role: string, jwt: string, options?: CallOptions): Promise<LoginToken> {
    const body = { role, jwt: jwt.trim() };
    return loginTokenOf(await this.#call({ method: "POST", path: LOGIN_PATH, body, effect: "reads" }, options));
  }

  /** Makes a key with its version 1. */
  async createKey(key: NewKey = {}, options?: CallOptions): Promise<Key> {
    return keyOf(await this.#call({ method: "POST", path: "/api/v1/keys", body: newKeyText(key), effect: "changes" }, options));
  }

  /** Reads a key. */
  async key(key: string, options?: CallOptions): Promise<Key> {
    return keyOf(await this.#call({ method: "GET", path: pathOf(key), effect: "reads" }, options));
  }

  /** Adds a version to a key. The new version signs, encrypts or makes MACs from now on. */
  async rotate(key: string, options?: CallOptions): Promise<Key> {
    return keyOf(await this.#call({ method: "POST", path: pathOf(key, "/rotate"), effect: "changes" }, options));
  }

  /** Lets a disabled key be used again. */
  async enable(key: string, options?: CallOptions): Promise<Key> {
    return keyOf(await this.#call({ method: "PATCH", path: pathOf(key), body: { enabled: true }, effect: "changes" }, options));
  }

  /** Keeps a key from being used. What it signed still verifies. */
  async disable(key: string, options?: CallOptions): Promise<Key> {
    return keyOf(await this.#call({ method: "PATCH", path: pathOf(key), body: { enabled: false }, effect: "changes" }, options));
  }

  /** The keys that the caller may read, sorted by id. */
  async *keys(options?: CallOptions): AsyncGenerator<Key, void, undefined> {
    yield* this.#list("/api/v1/keys", undefined, keyPageOf, options);
  }

  /**
   * The entries of the service's audit log, the oldest first. Only callers of the operators' tenant
   * may read them.
   * @param first the number of the first entry to read
   */
  async *auditEntries(first = 0, options?: CallOptions): AsyncGenerator<AuditEntry, void, undefined> {
    yield* this.#list("/api/v1/audit-log/entries", first > 0 ? first - 1 : undefined, entryPageOf, options);
  }

  /** Signs a message with the latest version of a key. */
  async sign(key: string, message: Uint8Array, options?: SignOptions): Promise<Signature> {
    const body = { message: base64(message), hash: options?.hash, padding: options?.padding, approval: options?.approval };
    return signatureOf(await this.#call({ method: "POST", path: pathOf(key, "/sign"), body, effect: "reads" }, options));
  }

  /**
   * Whether the key made the signature of the message.
   * @param key best the one that {@link Signature} names; a label means the latest version
   */
  async verify(key: string, message: Uint8Array, signature: Uint8Array, options?: SignatureOptions): Promise<boolean> {
    const scheme = { hash: options?.hash, padding: options?.padding };
    const body = { message: base64(message), signature: base64(signature), ...scheme };
    return (await this.#call({ method: "POST", path: pathOf(key, "/verify"), body, effect: "reads" }, options)).isTrue("valid");
  }

  /**
   * Signs a JWT with the latest version of a key that the service's settings name for that.
   * @param claims what the JWT says, with an audience (`aud`) that the settings permit; the service
   * sets `iss`, `iat`, `nbf`, `exp` and `jti`
   */
  async signJwt(key: string, claims: Readonly<Record<string, unknown>>, options?: JwtOptions): Promise<SignedJwt> {
    const body = { claims, lifetime_seconds: options?.lifetimeSeconds };
    return signedJwtOf(await this.#call({ method: "POST", path: pathOf(key, "/sign-jwt"), body, effect: "reads" }, options));
  }

  /**
   * Signs many messages: a result for each, in their order. One item's error does not touch the
   * others. If a request fails, the {@link BatchError} has the results of those before it.
   */
  async signMany(items: readonly SignItem[], options?: CallOptions): Promise<SignResult[]> {
    const each = ({ key, message }: SignItem) => ({ key, message: base64(message) });
    return this.#many("/api/v1/sign", items.map(each), resultBy(signatureOf), options);
  }

  /**
   * Verifies many signatures: a verdict for each, in their order. No verdict depends on another
   * item. If a request fails, the {@link BatchError} has the verdicts of those before it.
   */
  async verifyMany(items: readonly VerifyItem[], options?: CallOptions): Promise<Verdict[]> {
    const each = ({ key, message, signature }: VerifyItem) => ({ key, message: base64(message), signature: base64(signature) });
    return this.#many("/api/v1/verify", items.map(each), verdictOf, options);
  }

  /** Encrypts a plaintext with the latest version of a key. */
  async encrypt(key: string, plaintext: Uint8Array, options?: EncryptionOptions & CallOptions): Promise<Ciphertext> {
    const body = encryptText({ ...options, plaintext });
    return ciphertextOf(await this.#call({ method: "POST", path: pathOf(key, "/encrypt"), body, effect: "reads" }, options));
  }

  /**
   * Decrypts a ciphertext of any version of a key. The code `invalid_ciphertext` does not say
   * whether the ciphertext was changed, or belongs to another key, version, context or associated
   * data.
   */
  async decrypt(key: string, ciphertext: Uint8Array, options?: DecryptOptions): Promise<Plaintext> {
    const body = { ...decryptText({ ...options, ciphertext }), approval: options?.approval };
    return plaintextOf(await this.#call({ method: "POST", path: pathOf(key, "/decrypt"), body, effect: "reads" }, options));
  }

  /**
   * Encrypts a ciphertext again with the latest version of a key. The plaintext does not leave the
   * service.
   */
  async rewrap(key: string, ciphertext: Uint8Array, options?: EncryptionOptions & CallOptions): Promise<Ciphertext> {
    const body = decryptText({ ...options, ciphertext });
    return ciphertextOf(await this.#call({ method: "POST", path: pathOf(key, "/rewrap"), body, effect: "reads" }, options));
  }

  /** Makes a random key for data, and encrypts it with the latest version of a key. */
  async generateDataKey(key: string, options: DataKeyOptions = {}): Promise<DataKey> {
    const body = { bits: options.bits, plaintext: true, ...optionsText(options) };
    return dataKeyOf(await this.#call({ method: "POST", path: pathOf(key, "/data-key"), body, effect: "reads" }, options));
  }

  /**
   * Makes a random key for data, and returns it encrypted only: for programs that encrypt later, or
   * elsewhere.
   */
  async generateWrappedDataKey(key: string, options: DataKeyOptions = {}): Promise<Ciphertext> {
    const body = { bits: options.bits, plaintext: false, ...optionsText(options) };
    return ciphertextOf(await this.#call({ method: "POST", path: pathOf(key, "/data-key"), body, effect: "reads" }, options));
  }

  /** Makes the message authentication code (MAC) of a message with the latest version of a key. */
  async mac(key: string, message: Uint8Array, options?: CallOptions): Promise<Mac> {
    const body = { message: base64(message) };
    return macOf(await this.#call({ method: "POST", path: pathOf(key, "/mac"), body, effect: "reads" }, options));
  }

  /**
   * Whether the key made the MAC of the message.
   * @param key best the one that {@link Mac} names; a label means the latest version
   */
  async verifyMac(key: string, message: Uint8Array, mac: Uint8Array, options?: CallOptions): Promise<boolean> {
    const body = { message: base64(message), mac: base64(mac) };
    return (await this.#call({ method: "POST", path: pathOf(key, "/verify-mac"), body, effect: "reads" }, options)).isTrue("valid");
  }

  /** Encrypts many plaintexts with one key: a result for each, as {@link Client.signMany} has. */
  async encryptMany(key: string, items: readonly EncryptItem[], options?: CallOptions): Promise<ItemResult<Ciphertext>[]> {
    return this.#many(pathOf(key, "/encrypt/batch"), items.map(encryptText), resultBy(ciphertextOf), options);
  }

  /** Decrypts many ciphertexts of one key: a result for each, as {@link Client.signMany} has. */
  async decryptMany(key: string, items: readonly DecryptItem[], options?: CallOptions): Promise<ItemResult<Plaintext>[]> {
    return this.#many(pathOf(key, "/decrypt/batch"), items.map(decryptText), resultBy(plaintextOf), options);
  }

  /** Encrypts many ciphertexts again with the latest version of their key: a result for each. */
  async rewrapMany(key: string, items: readonly DecryptItem[], options?: CallOptions): Promise<ItemResult<Ciphertext>[]> {
    return this.#many(pathOf(key, "/rewrap/batch"), items.map(decryptText), resultBy(ciphertextOf), options);
  }

  /** Makes MACs of messages with one key: a result for each, as {@link Client.signMany} has. */
  async macMany(key: string, messages: readonly Uint8Array[], options?: CallOptions): Promise<ItemResult<Mac>[]> {
    const each = (message: Uint8Array) => ({ message: base64(message) });
    return this.#many(pathOf(key, "/mac/batch"), messages.map(each), resultBy(macOf), options);
  }

  /** Verifies many MACs of one key: a verdict for each, as {@link Client.verifyMany} has. */
  async verifyMacMany(key: string, items: readonly VerifyMacItem[], options?: CallOptions): Promise<Verdict[]> {
    const each = ({ message, mac, version }: VerifyMacItem) => ({ message: base64(message), mac: base64(mac), version });
    return this.#many(pathOf(key, "/verify-mac/batch"), items.map(each), verdictOf, options);
  }

  /**
   * Derives the secret that a key shares with the holder of a peer's private key, by
   * Diffie-Hellman. Fill it with zeros after its last use. It is no key: derive one from it, for
   * example by HKDF.
   * @param key best the key version whose public key the peer has; a label means the latest version
   * @param peer the peer's public key as DER of a SubjectPublicKeyInfo: `spki` of Web Crypto
   */
  async deriveSharedSecret(key: string, peer: Uint8Array, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>> {
    const body = { public_key: { format: "der", data: base64(peer) } };
    const path = pathOf(key, "/derive-shared-secret");
    return (await this.#call({ method: "POST", path, body, effect: "reads" }, options)).bytes("shared_secret");
  }

  /**
   * Requests the approvals that one use of a key needs. When enough people have approved, the same
   * caller signs or decrypts, with the id as `approval`.
   */
  async requestApproval({ key, subject, reason, expiresInSeconds }: NewApproval, options?: CallOptions): Promise<Approval> {
    const body = { key, subject, reason, expires_in_seconds: expiresInSeconds };
    return approvalOf(await this.#call({ method: "POST", path: "/api/v1/approvals", body, effect: "reads" }, options));
  }

  /** The requests that have not expired, about keys that the caller may read, the oldest first. */
  async *approvals(options?: CallOptions): AsyncGenerator<Approval, void, undefined> {
    yield* this.#list("/api/v1/approvals", undefined, approvalPageOf, options);
  }

  /** Reads a request for approval. */
  async approval(id: string, options?: CallOptions): Promise<Approval> {
    return approvalOf(await this.#call({ method: "GET", path: approvalPath(id), effect: "reads" }, options));
  }

  /**
   * Approves a request in the name of an approver, whose key signs the whole request. Compare
   * `subject` with a copy of your own before.
   */
  async approve(request: Approval, decider: Decider, options?: CallOptions): Promise<Approval> {
    return this.#decide("approve", request, decider, options);
  }

  /** Rejects a request in the name of an approver. */
  async reject(request: Approval, decider: Decider, options?: CallOptions): Promise<Approval> {
    return this.#decide("reject", request, decider, options);
  }

  async #decide(decision: string, { id, request }: Approval, { approver, sign }: Decider, options?: CallOptions): Promise<Approval> {
    const signed = new TextEncoder().encode(`bulla approval\0v1\0${decision}\0${request}`);
    const body = { approver, signature: base64(await sign(signed)) };
    return approvalOf(await this.#call({ method: "POST", path: approvalPath(id, `/${decision}`), body, effect: "reads" }, options));
  }

  /** Makes up to 65,536 random bytes, from the service's operating system. */
  async random(length: number, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>> {
    return (await this.#call({ method: "POST", path: "/api/v1/random", body: { bytes: length }, effect: "reads" }, options)).bytes("random");
  }

  /** Ends the calls that run, with the code `closed`, and refuses further ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const control of this.#running.keys()) control.abort(closed());
    await Promise.allSettled(this.#running.values());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The items of all pages of a list, from the one that `after` names. */
  async *#list<T>(
    path: string,
    after: string | number | undefined,
    read: (said: Answer) => Page<T>,
    options?: CallOptions,
  ): AsyncGenerator<T, void, undefined> {
    do {
      const query = after === undefined ? "" : `&after=${encodeURIComponent(after)}`;
      const page = read(await this.#call({ method: "GET", path: `${path}?limit=1000${query}`, effect: "reads" }, options));
      yield* page.items;
      after = page.next;
    } while (after !== undefined);
  }

  async #many<T>(path: string, items: object[], result: (said: Answer) => T, options?: CallOptions): Promise<T[]> {
    const results: T[] = [];
    for (let from = 0; from < items.length; from += MAX_BATCH_ITEMS) {
      try {
        results.push(...(await this.#oneBatch(path, items.slice(from, from + MAX_BATCH_ITEMS), result, options)));
      } catch (error) {
        throw error instanceof KmsError ? new BatchError(results, error) : error;
      }
    }
    return results;
  }

  async #oneBatch<T>(path: string, items: object[], result: (said: Answer) => T, options?: CallOptions): Promise<T[]> {
    const answer = await this.#call({ method: "POST", path, body: { items }, effect: "reads" }, options);
    const results = answer.list("results", result);
    if (results.length !== items.length) {
      throw new KmsError(`the service's answer has ${results.length} results for ${items.length} items`, { code: "unexpected_answer" });
    }
    return results;
  }

  /** Makes a request, again where that helps. */
  async #call(request: Request, { signal }: CallOptions = {}): Promise<Answer> {
    if (this.#isClosed) throw closed();
    signal?.throwIfAborted();
    // One controller for each call: signals that depend on one that lives long would stay with it.
    const control = new AbortController();
    const abort = () => control.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    const attempts = this.#attempts(request, control.signal);
    this.#running.set(control, attempts);
    try {
      return await attempts;
    } finally {
      this.#running.delete(control);
      signal?.removeEventListener("abort", abort);
    }
  }

  async #attempts(request: Request, ended: AbortSignal): Promise<Answer> {
    const { retries, backoff } = this.#options;
    const idempotencyKey = request.effect === "changes" ? randomText() : undefined;
    for (let attempt = 0; ; attempt++) {
      const token = await this.#bearer(request, ended);
      const made = await this.#attempt(request, token, idempotencyKey, ended);
      if ("answer" in made) return made.answer;
      ended.throwIfAborted();
      const { error, wait } = made;
      if (attempt >= retries || !mayRepeat(error) || wait > MAX_PAUSE) throw error;
      await pause(wait + Math.random() * backoff * 2 ** attempt, ended);
      ended.throwIfAborted();
    }
  }

  /** The token of a request; none for a login. */
  async #bearer({ path }: Request, ended: AbortSignal): Promise<string | undefined> {
    if (path === LOGIN_PATH) return undefined;
    if (this.#login === undefined) return this.#token;
    // Another call may wait for the same login: the end of this one does not end it.
    const { token } = await Promise.race([this.#currentToken(this.#login), rejectedBy(ended)]);
    return token;
  }

  async #currentToken(login: LoginOptions): Promise<CurrentToken> {
    const known = this.#current;
    const current = await known;
    if (current !== undefined && Date.now() < current.renew) return current;
    // Another call may have begun a login meanwhile.
    if (this.#current !== known && this.#current !== undefined) return this.#current;
    const made = this.#newToken(login);
    this.#current = made;
    // A login that failed is tried again by the next call.
    made.catch(() => {
      if (this.#current === made) this.#current = undefined;
    });
    return made;
  }

  async #newToken({ role, jwt }: LoginOptions): Promise<CurrentToken> {
    const { token, expires } = await this.logIn(role, await jwt());
    const now = Date.now();
    return { token, renew: now + (expires.getTime() - now) * 0.75 };
  }

  async #attempt(
    { method, path, body }: Request,
    token: string | undefined,
    idempotencyKey: string | undefined,
    ended: AbortSignal,
  ): Promise<Attempt> {
    const { fetch, timeout } = this.#options;
    const headers: Record<string, string> = {};
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
    if (body !== undefined) headers["content-type"] = "application/json";
    const late = AbortSignal.timeout(timeout);
    try {
      const response = await fetch(this.#base + path, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.any([ended, late]),
        redirect: "error",
      });
      const said = parsed(await response.text());
      return response.ok ? { answer: new Answer(said) } : refused(response, said);
    } catch (cause) {
      if (cause instanceof KmsError) return { error: cause, wait: 0 };
      if (late.aborted) return { error: new KmsError(`the service did not answer in ${timeout} ms`, { code: "timeout", retryable: true, cause }), wait: 0 };
      return { error: certificateError(cause) ?? unreachable(cause), wait: 0 };
    }
  }
}

/** A promise that fails with the reason of a signal. */
function rejectedBy(ended: AbortSignal): Promise<never> {
  return new Promise((_, reject) => ended.addEventListener("abort", () => reject(ended.reason), { once: true }));
}

/** Whether a repetition may help. The service recognizes those that would do harm. */
function mayRepeat(error: unknown): boolean {
  return error instanceof KmsError && error.retryable;
}

/** A text of JSON; nothing where it is another. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refused({ status, headers }: Response, said: unknown): Attempt {
  const requestId = headers.get("x-request-id") ?? undefined;
  // The service writes seconds. A time, as some proxies write it, does not count.
  const seconds = headers.get("retry-after") ?? "";
  const wait = /^\d+$/.test(seconds) ? Number(seconds) * 1000 : 0;
  const code = (said as { code?: unknown } | null | undefined)?.code;
  if (typeof code === "string") return { error: refusalOf(new Answer(said), status, requestId), wait };
  // A proxy in between, for example.
  const message = `a server that is not the service answered ${status}`;
  return { error: new KmsError(message, { code: "http", retryable: status === 503 || status === 429, status, requestId }), wait };
}

/** The options of an encryption in a request. */
function optionsText({ associatedData, context }: EncryptionOptions): object {
  return {
    ...(associatedData === undefined ? {} : { associated_data: base64(associatedData) }),
    ...(context === undefined ? {} : { context: base64(context) }),
  };
}

function encryptText({ plaintext, ...options }: EncryptItem): object {
  return { plaintext: base64(plaintext), ...optionsText(options) };
}

function decryptText({ ciphertext, ...options }: DecryptItem): object {
  return { ciphertext: base64(ciphertext), ...optionsText(options) };
}

/** What reads one result of a batch. */
function resultBy<T>(read: (said: Answer) => T): (said: Answer) => ItemResult<T> {
  return (said) => {
    const reason = errorIn(said);
    return reason ? { status: "rejected", reason } : { status: "fulfilled", value: read(said) };
  };
}

/** The verdict about one item of a batch. */
function verdictOf(said: Answer): Verdict {
  const error = errorIn(said);
  return error ? { valid: false, error } : { valid: said.isTrue("valid") };
}

/** The error of one item of a batch. */
function errorIn(said: Answer): KmsError | undefined {
  const error = said.part("error");
  return error && (refusalOf(error) ?? new KmsError("an error without a code", { code: "unexpected_answer" }));
}

/**
 * The codes that Node gives to the refusal of a certificate: by OpenSSL, by its own check of names,
 * and by the service in an alert.
 */
const CERTIFICATE_CODE = /CERT|ALERT_UNKNOWN_CA|^UNABLE_TO_VERIFY|^INVALID_(CA|PURPOSE)$|^HOSTNAME_MISMATCH$/;

function certificateError(error: unknown): KmsError | undefined {
  const cause = (error as { cause?: { code?: unknown; message?: unknown } } | undefined)?.cause;
  if (typeof cause?.code !== "string" || !CERTIFICATE_CODE.test(cause.code)) return undefined;
  const message = cause.code.includes("_ALERT_")
    ? `the service refused the client's certificate (${cause.code})`
    : `the client does not trust the service's certificate: ${cause.message} (${cause.code})`;
  return new KmsError(message, { code: "certificate", cause });
}

function unreachable(cause: unknown): KmsError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new KmsError(`there is no answer of the service: ${reason}`, { code: "unreachable", retryable: true, cause });
}

function closed(): KmsError {
  return new KmsError("the client was closed", { code: "closed" });
}

function pathOf(key: string, part = ""): string {
  return `/api/v1/keys/${encodeURIComponent(key)}${part}`;
}

function approvalPath(id: string, part = ""): string {
  return `/api/v1/approvals/${encodeURIComponent(id)}${part}`;
}

/** 128 random bits. */
function randomText(): string {
  return base64(crypto.getRandomValues(new Uint8Array(16)));
}

/** Waits until the time is over, or the signal has ended the call. */
function pause(milliseconds: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      ended.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    ended.addEventListener("abort", done);
  });
}
