import { readFileSync } from 'node:fs'

/** Maximum number of bytes that one call of `parse` accepts. */
export const MAX_PARSE_BYTES = 65_536

/** Result of a callback: continue parsing. */
export const CONTINUE = 0
/** Result of a callback: the message is malformed. */
export const REJECT = -1
/** Result of a callback: pause parsing after what the callback reported; `resume` continues. */
export const PAUSE = 21
/** Result of `onHeadersComplete`: the parser does not read the body. */
export const SKIP_BODY = 1

/** Callbacks of the parser. Positions refer to the bytes that it was given. */
export interface ParserCallbacks {
  onMessageBegin(): number
  /** A part of the target of a request, from `start` to `end`. */
  onTarget(start: number, end: number): number
  /** A part of the reason phrase of a response, from `start` to `end`. */
  onStatus(start: number, end: number): number
  onHeaderName(start: number, end: number): number
  onHeaderValue(start: number, end: number): number
  onHeadersComplete(status: number, upgrade: boolean, keepAlive: boolean): number
  onBody(start: number, end: number): number
  onMessageComplete(): number
}

/** Outcome of `parse`: all bytes were parsed, a callback paused it, or the bytes are not HTTP. */
export type ParseResult = 'all' | 'paused' | 'malformed'

/** Functions of the WebAssembly module; `pointer` is the address of a parser in its memory. */
interface Exports {
  readonly memory: WebAssembly.Memory
  malloc(size: number): number
  llhttp_alloc(type: number): number
  llhttp_free(pointer: number): void
  llhttp_execute(pointer: number, data: number, length: number): number
  llhttp_finish(pointer: number): number
  llhttp_resume(pointer: number): void
  llhttp_resume_after_upgrade(pointer: number): void
  llhttp_get_error_pos(pointer: number): number
  llhttp_get_method(pointer: number): number
  llhttp_method_name(method: number): number
  llhttp_get_http_major(pointer: number): number
  llhttp_get_http_minor(pointer: number): number
}

const TYPES = { requests: 1, responses: 2 } as const
const OK = 0
const PAUSED = 21
const PAUSED_FOR_UPGRADE = 22

let exports: Exports | undefined
/** Address of the input buffer in the module's memory. */
let input = 0
/** View of the input buffer; it becomes invalid when the module's memory grows. */
let view = new Uint8Array()
let activeCallbacks: ParserCallbacks | undefined
const methodNames: string[] = []

/**
 * HTTP/1.1 parser of requests or responses: llhttp in its strict mode, as the WebAssembly module in
 * `vendor/llhttp/`. The file `origin.json` there states its version, licence and source.
 */
export class Llhttp {
  readonly #callbacks: ParserCallbacks
  #pointer: number

  constructor(type: keyof typeof TYPES, callbacks: ParserCallbacks) {
    exports ??= instantiate()
    this.#callbacks = callbacks
    this.#pointer = exports.llhttp_alloc(TYPES[type])
  }

  /** Parses the bytes between two positions, at most 64 KiB. */
  parse(bytes: Uint8Array, from: number, to: number): ParseResult {
    const llhttp = exports as Exports
    const { memory } = llhttp
    if (view.buffer !== memory.buffer) view = new Uint8Array(memory.buffer, input, MAX_PARSE_BYTES)
    view.set(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to))
    activeCallbacks = this.#callbacks
    try {
      switch (llhttp.llhttp_execute(this.#pointer, input, to - from)) {
        case OK:
          return 'all'
        case PAUSED:
        case PAUSED_FOR_UPGRADE:
          return 'paused'
        default:
          return 'malformed'
      }
    } finally {
      activeCallbacks = undefined
    }
  }

  /** Number of bytes that were parsed before a pause. */
  get parsedBytes(): number {
    return (exports as Exports).llhttp_get_error_pos(this.#pointer) - input
  }

  /** Ends a pause. An upgrade, after which the parser pauses as well, is ignored. */
  resume(): void {
    const llhttp = exports as Exports
    llhttp.llhttp_resume(this.#pointer)
    llhttp.llhttp_resume_after_upgrade(this.#pointer)
  }

  /** Ends the input; returns whether the message is complete. */
  finish(): boolean {
    activeCallbacks = this.#callbacks
    try {
      return (exports as Exports).llhttp_finish(this.#pointer) === OK
    } finally {
      activeCallbacks = undefined
    }
  }

  /** Method of the request; valid once its head is complete. */
  get method(): string {
    const llhttp = exports as Exports
    const number = llhttp.llhttp_get_method(this.#pointer)
    return (methodNames[number] ??= textAt(llhttp.memory, llhttp.llhttp_method_name(number)))
  }

  /** Version of the message, such as `1.1`; valid once its head is complete. */
  get version(): string {
    const llhttp = exports as Exports
    const major = llhttp.llhttp_get_http_major(this.#pointer)
    const minor = llhttp.llhttp_get_http_minor(this.#pointer)
    return major === 1 && minor === 1 ? '1.1' : `${major}.${minor}`
  }

  /** Frees the parser's memory; the parser must not be used afterwards. */
  free(): void {
    if (this.#pointer === 0) return
    exports?.llhttp_free(this.#pointer)
    this.#pointer = 0
  }
}

// Reads a C string, up to its NUL.
function textAt({ buffer }: WebAssembly.Memory, pointer: number): string {
  const bytes = Buffer.from(buffer)
  return bytes.toString('latin1', pointer, bytes.indexOf(0, pointer))
}

function instantiate(): Exports {
  const code = readFileSync(new URL('./vendor/llhttp/llhttp.wasm', import.meta.url))
  const callbacks = (): ParserCallbacks => activeCallbacks as ParserCallbacks
  const { exports: made } = new WebAssembly.Instance(new WebAssembly.Module(code), {
    env: {
      wasm_on_message_begin: () => callbacks().onMessageBegin(),
      wasm_on_url: (_: number, at: number, length: number) =>
        callbacks().onTarget(at - input, at - input + length),
      wasm_on_status: (_: number, at: number, length: number) =>
        callbacks().onStatus(at - input, at - input + length),
      wasm_on_header_field: (_: number, at: number, length: number) =>
        callbacks().onHeaderName(at - input, at - input + length),
      wasm_on_header_value: (_: number, at: number, length: number) =>
        callbacks().onHeaderValue(at - input, at - input + length),
      wasm_on_headers_complete: (_: number, status: number, upgrade: number, keepAlive: number) =>
        callbacks().onHeadersComplete(status, upgrade === 1, keepAlive === 1),
      wasm_on_body: (_: number, at: number, length: number) =>
        callbacks().onBody(at - input, at - input + length),
      wasm_on_message_complete: () => callbacks().onMessageComplete(),
    },
  })
  const module = made as unknown as Exports
  input = module.malloc(MAX_PARSE_BYTES)
  return module
}
