import { kindError, rangeError, typeError } from "./errors.js";

/**
 * Data that can be hashed: text as UTF-8, and the bytes of any view or buffer, including shared and
 * resizable ones.
 */
export type Data = string | ArrayBufferView | ArrayBufferLike;

// The language's own accessors: an object cannot forge or hide their results by its own properties,
// and the compiler turns each of them into a load.
const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
const getters = (prototype: object, names: PropertyKey[]) =>
  names.map((name) => Object.getOwnPropertyDescriptor(prototype, name)!.get as (this: unknown) => any);
const PLACE = ["buffer", "byteOffset", "byteLength"];
const insideTypedArray = /* @__PURE__ */ getters(typedArray, PLACE);
const insideDataView = /* @__PURE__ */ getters(DataView.prototype, PLACE);
const [bufferOf, offsetOf] = insideTypedArray as [(this: unknown) => ArrayBufferLike, (this: unknown) => number];
const [kindOf, lengthOf] = getters(typedArray, [Symbol.toStringTag, "length"]) as [(this: unknown) => unknown, (this: unknown) => number];
const { indexOf } = Uint8Array.prototype;

const encoder = /* @__PURE__ */ new TextEncoder();

/** Whether `value` is a `Uint8Array` of any realm. */
export function isBytes(value: unknown): value is Uint8Array {
  return kindOf.call(value) === "Uint8Array";
}

/** The number of bytes in `bytes`, whatever properties it was given. */
export function sizeOf(bytes: Uint8Array): number {
  return lengthOf.call(bytes);
}

/** The buffer under `bytes`, and the offset of its first byte. */
export function placeOf(bytes: Uint8Array): { buffer: ArrayBufferLike; byteOffset: number } {
  return { buffer: bufferOf.call(bytes), byteOffset: offsetOf.call(bytes) };
}

/**
 * `bytes` from `from` to before `to`, in the same memory: like `subarray`, which a subclass could
 * replace.
 */
export function part(bytes: Uint8Array, from: number, to: number): Uint8Array {
  const { buffer, byteOffset } = placeOf(bytes);
  return new Uint8Array(buffer, byteOffset + from, to - from);
}

/**
 * The bytes of `data`, without a copy unless it is text.
 *
 * @throws TypeError if it is something else, or if its memory is gone, because it would then read
 * as empty
 */
export function bytesOf(data: Data): Uint8Array {
  if (isBytes(data)) {
    // Check that the memory is still there: a view whose buffer was transferred or shrunk away has
    // length 0.
    if (sizeOf(data) === 0) requireMemory(data);
    return data;
  }
  return typeof data === "string" ? encoder.encode(data) : bytesUnder(data);
}

function bytesUnder(data: Exclude<Data, string>): Uint8Array {
  const isView = ArrayBuffer.isView(data);
  const kind = kindOf.call(data);
  if (kind !== undefined) requireMemory(data as Uint8Array);
  try {
    // A value that is not a buffer, or is no longer one, cannot be viewed.
    const view = isView ? data : new DataView(data);
    const [buffer, offset, length] = (kind === undefined ? insideDataView : insideTypedArray).map((get) => get.call(view));
    return new Uint8Array(buffer, offset, length);
  } catch {
    if (isView || Object.prototype.toString.call(data) === "[object ArrayBuffer]") throw detached();
    throw kindError("ERR_DATA_TYPE", "data must be a string, buffer or view", data);
  }
}

/** Every method of a typed array refuses memory that is gone; the accessors do not. */
function requireMemory(view: Uint8Array): void {
  try {
    indexOf.call(view, 0, -1);
  } catch {
    throw detached();
  }
}

function detached() {
  return typeError("ERR_DETACHED", "the memory of data is gone: transferred or resized");
}

/** A copy of the 32 bytes of key: the caller may change or wipe its own. */
export function keyOf(key: ArrayBufferView | ArrayBufferLike): Uint8Array {
  if (typeof key === "string") throw kindError("ERR_KEY", "a key must be bytes", key);
  const bytes = bytesOf(key);
  if (sizeOf(bytes) !== 32) throw rangeError("ERR_KEY", `a key must be 32 bytes, not ${sizeOf(bytes)}`);
  const copy = new Uint8Array(32);
  copy.set(bytes);
  return copy;
}

/** A context string of key derivation as bytes. */
export function contextOf(context: string | ArrayBufferView): Uint8Array {
  if (typeof context !== "string" && !ArrayBuffer.isView(context)) {
    throw kindError("ERR_CONTEXT", "a context must be a string or bytes", context);
  }
  return bytesOf(context);
}
