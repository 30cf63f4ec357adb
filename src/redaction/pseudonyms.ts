import { createHmac } from 'node:crypto'

/** What tokens are made with. */
export interface PseudonymOptions {
  /** A secret of the gateway: without it nobody can tell the value of a token by trying values. */
  readonly key: Uint8Array
  /** Whose values they are: the same value of another user has another token. */
  readonly user: string
}

const MAX_KIND_LENGTH = 64
const DIGITS = 8
const OPENING = '[['
/** A whole token at the beginning of a text. */
const TOKEN = new RegExp(`^\\[\\[[A-Z0-9_]{1,${MAX_KIND_LENGTH}}_[0-9a-f]{${DIGITS}}\\]\\]`)
/** What can still become a token. */
const BEGUN = new RegExp(`^\\[(?:$|\\[(?:[A-Z0-9_]{0,${MAX_KIND_LENGTH}}(?:_[0-9a-f]{0,${DIGITS}}\\]?)?)?$)`)

/**
 * The tokens of one request: each stands for a value that was taken out of it, and is put back in its answer. Tokens that
 * this request did not make stay as they are, so that nobody reads another's values by sending a token.
 */
export class Pseudonyms {
  /** Characters that the longest token has, which a stream holds back at most. */
  static readonly mostToken = 2 * OPENING.length + MAX_KIND_LENGTH + 1 + DIGITS
  /** Characters of the tokens and values that are kept, in bytes. */
  bytes = 0
  readonly #options: PseudonymOptions
  readonly #tokens = new Map<string, string>()
  readonly #values = new Map<string, string>()

  constructor(options: PseudonymOptions) {
    this.#options = options
  }

  /** Tokens that were made. */
  get size(): number {
    return this.#values.size
  }

  /** The tokens that were made, with their values. */
  entries(): Iterable<readonly [string, string]> {
    return this.#values.entries()
  }

  /** The token of a value; the same for the same value in every request of the user, unless two values of one request collide. */
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

  /** Puts the values back in a whole text. */
  restore(text: string): string {
    const restorer = this.restorer()
    return restorer.push(text) + restorer.end()
  }

  /** Puts the values back in a text that is JSON, where they are written as parts of strings. */
  restoreJson(text: string): string {
    const restorer = this.restorer({ json: true })
    return restorer.push(text) + restorer.end()
  }

  /** Puts the values back in a text that arrives in pieces. With `json` the text is JSON. */
  restorer({ json = false } = {}): Restorer {
    return new Restorer(this.#values, json)
  }

  #digits(kind: string, value: string, attempt: number): string {
    const { key, user } = this.#options
    const content = JSON.stringify(attempt === 0 ? [user, kind, value] : [user, kind, value, attempt])
    return createHmac('sha256', key).update(content).digest('hex').slice(0, DIGITS)
  }
}

/** Puts values in the place of tokens. A token that has begun is held back until it is whole, or cannot become one. */
export class Restorer {
  readonly #values: ReadonlyMap<string, string>
  readonly #json: boolean
  #held = ''

  constructor(values: ReadonlyMap<string, string>, json: boolean) {
    this.#values = values
    this.#json = json
  }

  /** Characters that wait for the rest of a token. */
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
