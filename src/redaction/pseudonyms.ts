import { createHmac } from 'node:crypto'

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
  readonly #options: PseudonymOptions
  readonly #tokens = new Map<string, string>()
  readonly #values = new Map<string, string>()

  constructor(options: PseudonymOptions) {
    this.#options = options
  }

  /** Number of replacement tokens that were created. */
  get size(): number {
    return this.#values.size
  }

  /** The replacement tokens that were created, with the values that they replace. */
  entries(): Iterable<readonly [string, string]> {
    return this.#values.entries()
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
    this.bytes += 2 * (name.length + 2 * token.length + value.length)
    return token
  }

  /** Replaces the replacement tokens in a complete text by the original values. */
  restore(text: string): string {
    const restorer = this.restorer()
    return restorer.push(text) + restorer.end()
  }

  /**
   * Replaces the replacement tokens in a complete JSON text by the original values, escaped as parts of JSON
   * strings.
   */
  restoreJson(text: string): string {
    const restorer = this.restorer({ json: true })
    return restorer.push(text) + restorer.end()
  }

  /**
   * Creates a restorer, which puts the original values back into a text that arrives in pieces. With `json`,
   * values are escaped as parts of JSON strings.
   */
  restorer({ json = false } = {}): PseudonymRestorer {
    return new PseudonymRestorer(this.#values, json)
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
  readonly #values: ReadonlyMap<string, string>
  readonly #json: boolean
  #held = ''

  constructor(values: ReadonlyMap<string, string>, json: boolean) {
    this.#values = values
    this.#json = json
  }

  /** Number of characters that are held back because they may be the beginning of a replacement token. */
  get held(): number {
    return this.#held.length
  }

  push(chunk: string): string {
    if (this.#values.size === 0) return chunk
    const text = this.#held === '' ? chunk : this.#held + chunk
    let result = ''
    let passed = 0
    for (let at = text.indexOf('['); at !== -1; at = text.indexOf('[', at + 1)) {
      const candidate = text.slice(at, at + Pseudonyms.mostToken)
      if (at + candidate.length === text.length && BEGUN.test(candidate)) {
        this.#held = text.slice(at)
        return result + text.slice(passed, at)
      }
      const [token] = TOKEN.exec(candidate) ?? []
      const value = token === undefined ? undefined : this.#values.get(token)
      if (token === undefined || value === undefined) continue
      result += text.slice(passed, at) + (this.#json ? JSON.stringify(value).slice(1, -1) : value)
      passed = at + token.length
      at = passed - 1
    }
    this.#held = ''
    return passed === 0 ? text : result + text.slice(passed)
  }

  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest
  }
}
