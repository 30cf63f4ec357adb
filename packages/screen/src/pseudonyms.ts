import { createHmac } from 'node:crypto'
import { escaped } from './levels/escapes.ts'
import { TextLevel } from './levels/text-level.ts'

/** What the replacement tokens of a request, such as `[[EMAIL_1a2b3c4d]]`, are computed from. */
export interface PseudonymOptions {
  /**
   * Secret of the gateway. Without it, nobody can find the value behind a replacement token by trying values.
   */
  readonly key: Uint8Array
  /** User who sent the values; another user gets a different replacement token for the same value. */
  readonly user: string
}

const MAX_KIND_LENGTH = 64
const DIGITS = 8
const OPENING = '[['
/** Characters that values may add to one answer without memory being taken for them. */
const UNCOUNTED_RESTORED = 32_768
/** Maximum number of characters that values may add to one answer. */
const MAX_RESTORED = 8_388_608
/** Characters for which memory is taken at a time, and bytes of memory for each. */
const RESTORED_STEP = 65_536
const BYTES_PER_CHARACTER = 2
/** Matches a complete replacement token at the beginning of a text. */
const TOKEN = new RegExp(`^\\[\\[[A-Z0-9_]{1,${MAX_KIND_LENGTH}}_[0-9a-f]{${DIGITS}}\\]\\]`)
/** Matches a text that can still become a replacement token when more characters arrive. */
const BEGUN = new RegExp(`^\\[(?:$|\\[(?:[A-Z0-9_]{0,${MAX_KIND_LENGTH}}(?:_[0-9a-f]{0,${DIGITS}}\\]?)?)?$)`)

/**
 * Tokens that replace values of one request, such as `[[EMAIL_1a2b3c4d]]`. In the answer, each token is
 * replaced by its value again. Tokens that this request did not create are left unchanged, so that nobody can
 * read values of others by sending a token.
 */
export class Pseudonyms {
  /**
   * Length of the longest possible replacement token in characters, which is also the maximum that a stream
   * holds back.
   */
  static readonly mostToken = 2 * OPENING.length + MAX_KIND_LENGTH + 1 + DIGITS
  /** Approximate memory for the replacement tokens and their values, in bytes. */
  bytes = 0
  /** Takes memory for values that are put back into the answer; returns false if there is none. */
  hold: (bytes: number) => boolean = () => true
  /** Characters of values that were put back, and for how many of them memory is not needed or was taken. */
  #restored = 0
  #allowed = UNCOUNTED_RESTORED
  readonly #options: PseudonymOptions
  readonly #tokens = new Map<string, string>()
  readonly #values = new Map<string, string>()

  constructor(options: PseudonymOptions) {
    this.#options = options
  }

  /** Whether a value is written differently in a string of JSON. */
  hasEscapes = false

  /** Number of replacement tokens that were created. */
  get size(): number {
    return this.#values.size
  }

  /** The replacement tokens that were created, with the values that they replace. */
  entries(): Iterable<readonly [string, string]> {
    return this.#values.entries()
  }

  /** Adds replacement tokens that were created earlier for the same request, with their values. */
  know(entries: Iterable<readonly [string, string]>): void {
    for (const [token, value] of entries) {
      this.#values.set(token, value)
      this.hasEscapes ||= escaped(value, 1) !== value
      this.bytes += 2 * (2 * token.length + value.length)
    }
  }

  /**
   * Returns the token that replaces a value. It is the same in all requests of the user, unless two values of
   * one request would get the same token.
   */
  tokenFor(kind: string, value: string): string {
    const name = `${kind} ${value}`
    const known = this.#tokens.get(name)
    if (known !== undefined) return known
    let token = ''
    for (let attempt = 0; token === '' || this.#values.has(token); attempt++)
      token = `[[${kind.slice(0, MAX_KIND_LENGTH)}_${this.#digits(kind, value, attempt)}]]`
    this.#tokens.set(name, token)
    this.#values.set(token, value)
    this.hasEscapes ||= escaped(value, 1) !== value
    this.bytes += 2 * (name.length + 2 * token.length + value.length)
    return token
  }

  /**
   * The value that takes the place of a token in the answer; undefined if the request did not create the token,
   * or if the answer has become too large for the client's memory. A short answer may name a long value often.
   */
  valueOf(token: string): string | undefined {
    const value = this.#values.get(token)
    if (value === undefined) return undefined
    const restored = this.#restored + value.length
    if (restored > MAX_RESTORED) return undefined
    if (restored > this.#allowed) {
      const more = Math.max(RESTORED_STEP, restored - this.#allowed)
      if (!this.hold(BYTES_PER_CHARACTER * more)) return undefined
      this.#allowed += more
    }
    this.#restored = restored
    return value
  }

  /**
   * Replaces the replacement tokens in a complete text by the original values, which are escaped where they are in
   * strings of JSON.
   */
  restore(text: string): string {
    const restorer = this.restorer()
    return restorer.push(text) + restorer.end()
  }

  /** Replaces the replacement tokens in a complete JSON text by the original values. */
  restoreJson(text: string): string {
    const restorer = this.restorer({ json: true })
    return restorer.push(text) + restorer.end()
  }

  /**
   * Creates a restorer, which puts the original values back into a text that arrives in pieces. With `json`, the text
   * is expected to be JSON.
   */
  restorer({ json = false } = {}): PseudonymRestorer {
    return new PseudonymRestorer(this, json)
  }

  #digits(kind: string, value: string, attempt: number): string {
    const { key, user } = this.#options
    const content = JSON.stringify(attempt === 0 ? [user, kind, value] : [user, kind, value, attempt])
    return createHmac('sha256', key).update(content).digest('hex').slice(0, DIGITS)
  }
}

/**
 * Replaces replacement tokens by the original values in a text that arrives in pieces. The beginning of a
 * token is held back until the token is complete or cannot become one.
 */
export class PseudonymRestorer {
  readonly #pseudonyms: Pseudonyms
  /** Reads the JSON in the text; undefined if no value has anything to escape. */
  readonly #level: TextLevel | undefined
  /** How many times a value is escaped at least. */
  readonly #leastDepth: number
  #held = ''

  constructor(pseudonyms: Pseudonyms, json: boolean) {
    this.#pseudonyms = pseudonyms
    this.#leastDepth = json ? 1 : 0
    if (pseudonyms.hasEscapes) this.#level = new TextLevel({ searches: [], ofStrings: [] }, undefined, json)
  }

  /** Number of characters that are held back because they may be the beginning of a replacement token. */
  get held(): number {
    return this.#held.length
  }

  push(chunk: string): string {
    if (this.#pseudonyms.size === 0) return chunk
    const text = this.#held === '' ? chunk : this.#held + chunk
    let result = ''
    let passed = 0
    for (let at = text.indexOf('['); at !== -1; at = text.indexOf('[', at + 1)) {
      const candidate = text.slice(at, at + Pseudonyms.mostToken)
      if (at + candidate.length === text.length && BEGUN.test(candidate)) {
        this.#held = text.slice(at)
        return result + this.#kept(text.slice(passed, at))
      }
      const [token] = TOKEN.exec(candidate) ?? []
      const value = token === undefined ? undefined : this.#pseudonyms.valueOf(token)
      if (token === undefined || value === undefined) continue
      result +=
        this.#kept(text.slice(passed, at)) +
        escaped(value, Math.max(this.#leastDepth, this.#level?.depth ?? 0))
      this.#level?.read(token)
      passed = at + token.length
      at = passed - 1
    }
    this.#held = ''
    return result + this.#kept(passed === 0 ? text : text.slice(passed))
  }

  #kept(text: string): string {
    this.#level?.read(text)
    return text
  }

  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest
  }
}
