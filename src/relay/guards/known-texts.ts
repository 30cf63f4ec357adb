import { hash } from 'node:crypto'
import type { Screen } from '../../redaction/screen.ts'

/** Texts of one user that are remembered at most: those of several long conversations. */
const MAX_OF_USER = 4_096
/** Texts that are remembered at most in all: about 10 MB. */
const MAX_TEXTS = 65_536
/** Texts that are shorter in bytes are checked as quickly as they are recognised. */
const MIN_BYTES = 128

/** The texts of a user in which guards have found nothing. */
export interface KnownTextsOfUser {
  /** The name of a text in JSON under these guards; undefined for a short one, which is not remembered. */
  nameOf(screen: Screen, bytes: Buffer, isJson: boolean): string | undefined
  /** Whether nothing was found in it. It is then among the last to be forgotten. */
  has(name: string): boolean
  add(name: string): void
}

/**
 * Remembers by digests in which texts of requests guards have found nothing, so that a conversation is not checked anew as
 * a whole with each of its messages. What was found is not remembered. `docs/guards.md: Matching`.
 */
export class KnownTexts {
  readonly #maxOfUser: number
  readonly #maxTexts: number
  /** Names by user, the oldest first, and the users by their last use. */
  readonly #users = new Map<number, Map<string, true>>()
  /** Other guards, or the same ones with another action, are other screens. */
  readonly #screens = new WeakMap<Screen, number>()
  #nextScreen = 0
  #texts = 0

  constructor({ maxOfUser = MAX_OF_USER, maxTexts = MAX_TEXTS } = {}) {
    this.#maxOfUser = maxOfUser
    this.#maxTexts = maxTexts
  }

  /** Texts that are remembered. */
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
