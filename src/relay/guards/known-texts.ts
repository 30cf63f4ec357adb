import { hash } from 'node:crypto'
import type { PoolShareOwner } from '../../limits/fair-pool.ts'
import { MemoryAllocation, type RequestMemory } from '../../limits/request-memory.ts'
import type { TextScreen } from '../../redaction/screen.ts'

/** Maximum number of remembered texts per user; enough for several long conversations. */
const MAX_OF_USER = 4_096
/** Maximum number of remembered texts of all users; together they take about 10 MB. */
const MAX_TEXTS = 65_536
/** Memory of a text that is remembered, in bytes. */
const TEXT_BYTES = 160
/** Texts with fewer bytes are not remembered, because checking them is as quick as recognising them. */
const MIN_BYTES = 128

/** The names of a user's texts, the oldest first, and the memory that they take. */
interface UserTexts {
  readonly names: Map<string, true>
  readonly allocation: MemoryAllocation
}

/** The texts of a user in which guards have found nothing. */
export interface KnownTextsOfUser {
  /**
   * Returns a name for a text, given as the bytes of a JSON string, together with the guards of the screen.
   * Undefined for a short text, which is not remembered. `readAs` distinguishes the ways to read a value.
   */
  nameOf(screen: TextScreen, bytes: Buffer, readAs: string): string | undefined
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
  readonly #memory: RequestMemory
  readonly #maxOfUser: number
  readonly #maxTexts: number
  /** The texts by user; the user whose text was remembered last comes last. */
  readonly #users = new Map<PoolShareOwner['client'], UserTexts>()
  /**
   * A number for each combination of guards and their actions, because a text may pass one and not another.
   */
  readonly #screens = new WeakMap<TextScreen, number>()
  #nextScreen = 0
  #texts = 0

  /** `memory`: the memory of remembered texts counts against the shares of their users. */
  constructor(memory: RequestMemory, { maxOfUser = MAX_OF_USER, maxTexts = MAX_TEXTS } = {}) {
    this.#memory = memory
    this.#maxOfUser = maxOfUser
    this.#maxTexts = maxTexts
  }

  /** Number of remembered texts of all users. */
  get size(): number {
    return this.#texts
  }

  of(owner: PoolShareOwner): KnownTextsOfUser {
    return {
      nameOf: (screen, bytes, readAs) => {
        if (bytes.length < MIN_BYTES) return undefined
        const digest = hash('sha256', bytes, 'base64url')
        // A text is by far the most frequent, and needs no second hash.
        const name = readAs === 'text' ? digest : hash('sha256', `${digest} ${readAs}`, 'base64url')
        return `${this.#screenId(screen)} ${name}`
      },
      has: (name) => {
        const names = this.#users.get(owner.client)?.names
        if (!names?.delete(name)) return false
        names.set(name, true)
        return true
      },
      add: (name) => this.#add(owner, name),
    }
  }

  #add(owner: PoolShareOwner, name: string): void {
    const texts = this.#users.get(owner.client) ?? {
      names: new Map(),
      allocation: new MemoryAllocation(owner),
    }
    const { names, allocation } = texts
    if (!names.delete(name)) {
      // If there is no memory for the text, it is not remembered.
      if (!this.#memory.take(allocation, TEXT_BYTES)) return
      this.#texts += 1
    }
    names.set(name, true)
    this.#users.delete(owner.client)
    this.#users.set(owner.client, texts)
    if (names.size > this.#maxOfUser) this.#forgetOldest(texts)
    while (this.#texts > this.#maxTexts) {
      const [oldest] = this.#users
      if (!oldest) return
      const [client, others] = oldest
      this.#forgetOldest(others)
      if (others.names.size === 0) this.#users.delete(client)
    }
  }

  #forgetOldest({ names, allocation }: UserTexts): void {
    for (const name of names.keys()) {
      names.delete(name)
      this.#texts -= 1
      this.#memory.give(allocation, TEXT_BYTES)
      return
    }
  }

  #screenId(screen: TextScreen): number {
    let id = this.#screens.get(screen)
    if (id === undefined) this.#screens.set(screen, (id = this.#nextScreen++))
    return id
  }
}
