/**
 * A client of bulla's key management service (`bulla serve`). It signs and verifies with keys that
 * never leave the service.
 *
 * A key is named by its label, by its name (`TENANT/PURPOSE/ALGORITHM/UUID`), or by the name of one
 * version, as {@link Signature.key} has it.
 *
 * A call repeats its request, at most as often as {@link ClientOptions.retries} says, in these
 * cases:
 *
 * - The service refused it and says that a repetition may help ({@link KmsError.retryable}). It
 * changed nothing then.
 * - There was no answer, or a proxy answered 429 or 503 instead of the service, and the request
 * changes nothing.
 *
 * The pause is at least as long as the answer asks for (`Retry-After`). A call that would have to
 * pause for more than 30 seconds fails instead. A certificate that one side refuses stays refused,
 * so that the request is not repeated.
 */
import { textOf } from "./text.js";

/** The settings of a {@link Client}. */
export interface ClientOptions {
  /** A capability token, sent with each request. */
  token?: string;
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
   * const client = new Client(address, { fetch: (url, init) => fetch(url, { ...init, dispatcher })
   * }); ```
   */
  fetch?: typeof fetch;
}

/** The settings of one call. */
export interface CallOptions {
  /** Ends the call and its repetitions. */
  signal?: AbortSignal;
}

/**
 * The service's refusal. Two codes are this client's own: with `http`, the answer with this status
 * is not one of the service; with `certificate`, the client does not trust the service's
 * certificate, or the service refused the client's. Some platforms do not say that a certificate is
 * the reason, and the error is a `TypeError`: browsers, and Node if the service refuses the
 * client's certificate in TLS 1.3.
 */
export class KmsError extends Error {
  override readonly name = "KmsError";

  /** What went wrong; codes never change: see `spec/http-api.md`. */
  readonly code: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** The HTTP status; 200 for one item of a batch, and 0 with the code `certificate`. */
  readonly status: number;
  /** The name of the request in the service's log. */
  readonly requestId: string | undefined;

  constructor(message: string, code: string, retryable: boolean, status: number, requestId: string | undefined, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.retryable = retryable;
    this.status = status;
    this.requestId = requestId;
  }
}

/** When the service rotates a key by itself. */
export interface Rotation {
  max_age_seconds?: number;
  max_uses?: number;
}

/** A key to create; without settings, an Ed25519 key without a label. */
export interface NewKey {
  purpose?: string;
  algorithm?: string;
  label?: string;
  exportable?: boolean;
  /**
   * Whether it signs digests that callers hash themselves, for ECDSA. Such a key signs no
   * statements.
   */
  signs_digests?: boolean;
  rotation?: Rotation;
  /**
   * What makes and keeps the private keys: `pkcs11` is the token with which the service was
   * started. In software when absent.
   */
  backend?: string;
}

/** One version of a key. */
export interface KeyVersion {
  /** The key's name, and `/vN`. */
  id: string;
  version: number;
  public_key: Uint8Array<ArrayBuffer>;
  created: Date;
  /** When the next version took its place; null for the newest. */
  retired: Date | null;
  state: "usable" | "revoked" | "destroyed";
  origin: "generated" | "imported" | "public_only";
}

/** A key, without its private keys. */
export interface Key {
  /** `TENANT/PURPOSE/ALGORITHM/UUID`. */
  key: string;
  label: string | null;
  algorithm: string;
  state: "enabled" | "disabled" | "pending_destruction" | "destroyed";
  revision: number;
  backend: string;
  exportable: boolean;
  /** Whether it signs digests, and so no statements; absent if it does not. */
  signs_digests?: boolean;
  minimum_version: number;
  rotation: Rotation;
  /** The newest version, the one that signs. */
  head: number;
  versions: KeyVersion[];
}

/** A signature, and the key version that made it. */
export interface Signature {
  /** The name of the version: {@link Client.verify} takes it as a key. */
  key: string;
  version: number;
  signature: Uint8Array<ArrayBuffer>;
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

/** A verdict. Where nothing could be verified, it is not valid, and `error` says why. */
export interface Verdict {
  valid: boolean;
  error?: KmsError;
}

/** The most items of one request; longer batches are several. */
const BATCH = 1000;

/** The longest pause for which an answer may ask, in milliseconds. */
const LONGEST_PAUSE = 30_000;

/**
 * Whether a request may be repeated after it failed without an answer, when it may have had its
 * effect.
 */
type Repeatable = "once" | "any";

/** A client of one service. */
export class Client {
  readonly #base: string;
  readonly #options: Required<Omit<ClientOptions, "token">>;
  readonly #token: string | undefined;

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
    const { retries = 3, backoff = 50, timeout = 30_000 } = options;
    this.#options = { retries, backoff, timeout, fetch: options.fetch ?? globalThis.fetch.bind(globalThis) };
  }

  /** Makes a key with its version 1. */
  async createKey(key: NewKey = {}, options?: CallOptions): Promise<Key> {
    return keyOf(await this.#call("POST", "/api/v1/keys", key, "once", options));
  }

  /** Reads a key. */
  async key(key: string, options?: CallOptions): Promise<Key> {
    return keyOf(await this.#call("GET", pathOf(key), undefined, "any", options));
  }

  /** Adds a version to a key. The new version signs from now on. */
  async rotate(key: string, options?: CallOptions): Promise<Key> {
    return keyOf(await this.#call("POST", pathOf(key, "/rotate"), undefined, "once", options));
  }

  /** Makes a key sign, or keeps it from signing. What it signed still verifies. */
  async enable(key: string, enabled = true, options?: CallOptions): Promise<Key> {
    return keyOf(await this.#call("PATCH", pathOf(key), { enabled }, "any", options));
  }

  /** The keys that the caller may read, sorted by name. */
  async *keys(options?: CallOptions): AsyncGenerator<Key, void, undefined> {
    let after = "";
    do {
      const page = await this.#call("GET", `/api/v1/keys?limit=1000${after}`, undefined, "any", options);
      for (const key of page.keys) yield keyOf(key);
      after = page.next && `&after=${encodeURIComponent(page.next)}`;
    } while (after);
  }

  /** Signs a message with the newest version of a key. */
  async sign(key: string, message: Uint8Array, options?: CallOptions): Promise<Signature> {
    return signatureOf(await this.#call("POST", pathOf(key, "/sign"), { message: base64(message) }, "any", options));
  }

  /**
   * Whether the key made the signature of the message.
   * @param key best the one that {@link Signature} names; a label means the newest version
   */
  async verify(key: string, message: Uint8Array, signature: Uint8Array, options?: CallOptions): Promise<boolean> {
    const body = { message: base64(message), signature: base64(signature) };
    return (await this.#call("POST", pathOf(key, "/verify"), body, "any", options)).valid === true;
  }

  /**
   * Signs many messages: a signature or an error for each, in their order. One item's error does
   * not touch the others.
   */
  async signMany(items: readonly SignItem[], options?: CallOptions): Promise<(Signature | KmsError)[]> {
    const each = (item: SignItem) => ({ key: item.key, message: base64(item.message) });
    return this.#many("/api/v1/sign", items.map(each), (one) => (one.error ? errorOf(one.error) : signatureOf(one)), options);
  }

  /**
   * Verifies many signatures: a verdict for each, in their order. No verdict depends on another
   * item.
   */
  async verifyMany(items: readonly VerifyItem[], options?: CallOptions): Promise<Verdict[]> {
    const each = ({ key, message, signature }: VerifyItem) => ({ key, message: base64(message), signature: base64(signature) });
    const verdict = (one: any) => (one.error ? { valid: false, error: errorOf(one.error) } : { valid: one.valid === true });
    return this.#many("/api/v1/verify", items.map(each), verdict, options);
  }

  async #many<T>(path: string, items: object[], result: (one: any) => T, options?: CallOptions): Promise<T[]> {
    const results: T[] = [];
    for (let from = 0; from < items.length; from += BATCH) {
      const part = items.slice(from, from + BATCH);
      const answer = await this.#call("POST", path, { items: part }, "any", options);
      if (answer.results?.length !== part.length) throw new TypeError("the service's answer has not one result for each item");
      results.push(...answer.results.map(result));
    }
    return results;
  }

  async #call(method: string, path: string, body: unknown, again: Repeatable, { signal }: CallOptions = {}): Promise<any> {
    const { retries, backoff } = this.#options;
    for (let attempt = 0; ; attempt++) {
      const result = await this.#attempt(method, path, body, signal);
      if ("value" in result) return result.value;
      const { error, wait = 0 } = result;
      if (attempt >= retries || !mayRepeat(error, again) || wait > LONGEST_PAUSE || signal?.aborted) throw error;
      await pause(wait + Math.random() * backoff * 2 ** attempt, signal);
    }
  }

  async #attempt(method: string, path: string, body: unknown, signal: AbortSignal | undefined): Promise<Attempt> {
    const { fetch, timeout } = this.#options;
    const headers: Record<string, string> = {};
    if (this.#token !== undefined) headers["authorization"] = `Bearer ${this.#token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const ended = AbortSignal.timeout(timeout);
    try {
      const response = await fetch(this.#base + path, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        signal: signal ? AbortSignal.any([signal, ended]) : ended,
        redirect: "error",
      });
      return response.ok ? { value: await response.json() } : await refusalOf(response);
    } catch (error) {
      return { error: certificateError(error) ?? error };
    }
  }
}

/**
 * What one attempt gave: a value, or an error with the pause that the answer asks for, in
 * milliseconds.
 */
type Attempt = { value: any } | { error: unknown; wait?: number };

/** Whether a repetition may help, and does no harm. */
function mayRepeat(error: unknown, again: Repeatable): boolean {
  if (!(error instanceof KmsError)) return again === "any";
  // Some proxies answer 503, too, when the service got the request and its answer was lost.
  return error.retryable && (error.code !== "http" || again === "any");
}

async function refusalOf(response: Response): Promise<Attempt> {
  const { status, headers } = response;
  const said = await response.json().catch(() => undefined);
  const id = headers.get("x-request-id") ?? undefined;
  // The service writes seconds. A time, as some proxies write it, does not count.
  const seconds = headers.get("retry-after") ?? "";
  const wait = /^\d+$/.test(seconds) ? Number(seconds) * 1000 : 0;
  if (typeof said?.code === "string") return { error: errorOf(said, status, id), wait };
  // A proxy in between, for example.
  const message = `a server that is not the service answered ${status}`;
  return { error: new KmsError(message, "http", status === 503 || status === 429, status, id), wait };
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
  return new KmsError(message, "certificate", false, 0, undefined, { cause });
}

function pathOf(key: string, part = ""): string {
  return `/api/v1/keys/${encodeURIComponent(key)}${part}`;
}

function errorOf(said: { code: string; message?: string; retryable?: boolean }, status = 200, id?: string): KmsError {
  return new KmsError(String(said.message ?? said.code), said.code, said.retryable === true, status, id);
}

function keyOf(said: any): Key {
  const versions = said.versions.map((version: any) => ({
    ...version,
    public_key: bytesOf(version.public_key),
    created: new Date(version.created),
    retired: version.retired && new Date(version.retired),
  }));
  return { ...said, versions };
}

function signatureOf(said: any): Signature {
  return { key: said.key, version: said.version, signature: bytesOf(said.signature) };
}

function base64(bytes: Uint8Array): string {
  return textOf("base64", bytes);
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done);
  });
}
