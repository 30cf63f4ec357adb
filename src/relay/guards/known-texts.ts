import { hash } from 'node:crypto'
import type { Screen } from '../../redaction/screen.ts'

/** Maximum number of remembered texts per user; enough for several long conversations. */
const MAX_OF_USER = 4_096
/** Maximum number of remembered texts in all, which take about 10 MB. */
const MAX_TEXTS = 65_536
/** Shorter texts, in bytes, are not remembered, because checking them is as fast as looking them up. */
const MIN_BYTES = 128

/** The texts of a user in which guards have found nothing. */
export interface KnownTextsOfUser {
  /**
   * Identifies a text, given as JSON, together with the guards of the screen. Undefined for a short text,
   * which is not remembered.
   */
  nameOf(screen: Screen, bytes: Buffer, isJson: boolean): string | undefined
  /** Whether guards have found nothing in the text with this name. If so, the text counts as just used. */
  has(name: string): boolean
  add(name: string): void
}

/**
 * Remembers, as digests, texts of requests in which guards have found nothing. With each further message of a
 * conversation, earlier messages then need not be checked again. Texts with matches are not remembered.
 * `docs/guards.md: Matching`.
 */
export class KnownTexts {
  readonly #maxOfUser: number
  readonly #maxTexts: number
  /** Names of texts by user: users and names in order of last use, the oldest first. */
  readonly #users = new Map<number, Map<string, true>>()
  /**
   * Numbers that identify screens. Other guards, or other actions of the same guards, have another screen.
   */
  readonly #screens = new WeakMap<Screen, number>()
  #nextScreen = 0
  #texts = 0

  constructor({ maxOfUser = MAX_OF_USER, maxTexts = MAX_TEXTS } = {}) {
    this.#maxOfUser = maxOfUser
    this.#maxTexts = maxTexts
  }

  /** Number of remembered texts. */
  get size(): number {
    return this.#texts
  }

  of(user: number): KnownTextsOfUser {
    return {
      nameOf: (screen, bytes, isJson) => {
        if (bytes.length < MIN_BYTES) return undefined
        return `${this.#screenId(screen)}${isJson ? 'j' : 't'}${hash('sha256', bytes, 'base64url')}`
      },
      has: (name) => {
        const names = this.#users.get(user)
        if (!names?.delete(name)) return false
        names.set(name, true)
        return true
      },
      add: (name) => this.#add(user, name),
    }
  }

  #add(user: number, name: string): void {
    const names = this.#users.get(user) ?? new Map<string, true>()
    this.#users.delete(user)
    this.#users.set(user, names)
    if (!names.delete(name)) this.#texts += 1
    names.set(name, true)
    if (names.size > this.#maxOfUser) this.#forgetOldest(names)
    while (this.#texts > this.#maxTexts) {
      const [oldest] = this.#users
      if (!oldest) return
      const [id, others] = oldest
      this.#forgetOldest(others)
      if (others.size === 0) this.#users.delete(id)
    }
  }

  #forgetOldest(names: Map<string, true>): void {
    for (const name of names.keys()) {
      names.delete(name)
      this.#texts -= 1
      return
    }
  }

  #screenId(screen: Screen): number {
    let id = this.#screens.get(screen)
    if (id === undefined) this.#screens.set(screen, (id = this.#nextScreen++))
    return id
  }
}
