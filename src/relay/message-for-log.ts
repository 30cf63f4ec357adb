/** Maximum characters of an upstream's message that are logged. */
const MAX_LENGTH = 500
/** Requests above this size are not searched, because that would delay other calls. */
const MAX_BODY_BYTES = 1024 * 1024

/** Control and formatting characters. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * An upstream's redacted message for the log: texts that it repeats from `request`, the client's JSON, are
 * removed, control and formatting characters are escaped, and it has at most 500 characters. Undefined if
 * there is no message, or if the request is too large to be compared with it.
 */
export function messageForLog(message: string | undefined, request: Buffer): string | undefined {
  if (message === undefined || request.length > MAX_BODY_BYTES) return undefined
  const texts = textsOf(request)
  if (!texts) return undefined
  return withoutEcho(message, texts).replace(INVISIBLE, escaped).slice(0, MAX_LENGTH).toWellFormed()
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return `\\u${code > 0xffff ? `{${code.toString(16)}}` : code.toString(16).padStart(4, '0')}`
}

// All strings of the request, except for field names and the model's name, which operators need.
function textsOf(request: Buffer): string[] | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(request.toString())
  } catch {
    return undefined
  }
  const texts: string[] = []
  const values: unknown[] = Object.entries(parsed ?? {}).map(([name, value]) =>
    name === 'model' ? null : value,
  )
  for (let value = values.pop(); value !== undefined; value = values.pop()) {
    if (typeof value === 'string') texts.push(value)
    else if (typeof value === 'object' && value !== null)
      for (const part of Object.values(value)) values.push(part)
  }
  return texts
}

/** Maximum consecutive UTF-8 bytes that a message and a text may share; less than four CJK characters. */
const MAX_IN_COMMON = 11
/** Minimum length of a run that is removed. */
const RUN = MAX_IN_COMMON + 1
/** Length of the indexed pieces. Every run of `RUN` bytes contains a piece at a multiple of this length. */
const PIECE = RUN / 2
/**
 * Number of times that a message is unescaped: an upstream may quote another's error that quoted the request.
 */
const UNESCAPED_TIMES = 2

/** Escape sequences of JSON, and of languages in which upstreams print strings. */
const ESCAPE =
  /\\(?:u\{([\da-fA-F]{1,6})\}|u([\da-fA-F]{4})|U([\da-fA-F]{8})|x([\da-fA-F]{2})|(["'`\\/bfnrt]))/g
const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** A form of a message for comparison, with the original position of each of its UTF-16 units. */
interface Form {
  readonly text: string
  readonly starts: readonly number[]
  readonly ends: readonly number[]
}

/**
 * Removes from `message` what it shares with any of `texts`: each run of 12 UTF-8 bytes, unescaped or escaped
 * on either side (`\n`, `\"`, `\u4e00`), becomes `[…]`. Takes linear time.
 */
function withoutEcho(message: string, texts: readonly string[]): string {
  const places = new Map<string, number[]>()
  const pieces = new Set<string>()
  for (const form of formsOf(message)) addRuns(form, places, pieces)
  const isEcho = new Uint8Array(message.length)
  for (const text of texts) {
    markRuns(text, places, pieces, isEcho)
    if (text.includes('\\')) markRuns(text.replace(ESCAPE, unescaped), places, pieces, isEcho)
  }
  return cutOut(message, isEcho)
}

function formsOf(message: string): Form[] {
  const indexes = Array.from({ length: message.length }, (_, at) => at)
  let form: Form = { text: message, starts: indexes, ends: indexes.map((at) => at + 1) }
  const forms = [form]
  for (let times = 0; times < UNESCAPED_TIMES && form.text.includes('\\'); times++)
    forms.push((form = unescapedForm(form)))
  return forms
}

function unescapedForm({ text, starts, ends }: Form): Form {
  let plain = ''
  const begin: number[] = []
  const end: number[] = []
  let at = 0
  const add = (units: string, from: number, to: number): void => {
    plain += units
    for (let i = 0; i < units.length; i++) {
      begin.push(starts[from] as number)
      end.push(ends[to - 1] as number)
    }
  }
  for (const match of text.matchAll(ESCAPE)) {
    for (; at < match.index; at++) add(text[at] as string, at, at + 1)
    const [escape, ...groups] = match
    add(unescaped(escape, ...groups), at, at + escape.length)
    at += escape.length
  }
  for (; at < text.length; at++) add(text[at] as string, at, at + 1)
  return { text: plain, starts: begin, ends: end }
}

function unescaped(escape: string, ...groups: unknown[]): string {
  const letter = groups[4]
  if (typeof letter === 'string') return CONTROLS[letter] ?? letter
  const hex = groups.slice(0, 4).find((group) => typeof group === 'string')
  const code = Number.parseInt(hex ?? '', 16)
  return code <= 0x10ffff ? String.fromCodePoint(code) : escape
}

/** UTF-8 as a string of one character per byte: strings are cut and compared faster than buffers. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function addRuns({ text, starts, ends }: Form, places: Map<string, number[]>, pieces: Set<string>): void {
  const bytes = bytesOf(text)
  /** For each byte, the position of its character in the message. */
  const begin: number[] = []
  const end: number[] = []
  let at = 0
  for (const character of text) {
    const last = at + character.length - 1
    for (let i = Buffer.byteLength(character); i > 0; i--) {
      begin.push(starts[at] as number)
      end.push(ends[last] as number)
    }
    at = last + 1
  }
  for (let i = 0; i + PIECE <= bytes.length; i++) pieces.add(bytes.slice(i, i + PIECE))
  for (let i = 0; i + RUN <= bytes.length; i++) {
    const run = bytes.slice(i, i + RUN)
    const place = [begin[i] as number, end[i + MAX_IN_COMMON] as number]
    const known = places.get(run)
    if (known) known.push(...place)
    else places.set(run, place)
  }
}

function markRuns(
  text: string,
  places: Map<string, number[]>,
  pieces: ReadonlySet<string>,
  isEcho: Uint8Array,
): void {
  const bytes = bytesOf(text)
  for (let at = 0; at + PIECE <= bytes.length; at += PIECE) {
    if (!pieces.has(bytes.slice(at, at + PIECE))) continue
    for (let from = Math.max(0, at - PIECE); from <= at; from++) {
      const run = bytes.slice(from, from + RUN)
      const found = places.get(run)
      if (!found) continue
      for (let i = 0; i < found.length; i += 2) isEcho.fill(1, found[i], found[i + 1])
      places.delete(run)
    }
  }
}

function cutOut(message: string, isCut: Uint8Array): string {
  let kept = ''
  for (let at = 0; at < message.length; at++) {
    if (!isCut[at]) kept += message[at]
    else if (at === 0 || !isCut[at - 1]) kept += '[…]'
  }
  return kept
}
