import { hash } from 'node:crypto'
import type { TextScreen } from '@sluice/screen/screen'
import type { PoolShareOwner } from '../../limits/fair-pool.ts'
import { MemoryAllocation, type RequestMemory } from '../../limits/request-memory.ts'
import { OwnedEntries } from '../../domain/owned-entries.ts'

/** Maximum number of remembered texts per user; enough for several long conversations. */
const MAX_OF_USER = 4_096
/** Maximum number of remembered texts of all users; together they take about 10 MB. */
const MAX_TEXTS = 65_536
/** Memory of a text that is remembered, in bytes. */
const TEXT_BYTES = 160
/** Texts with fewer bytes are not remembered, because checking them is as quick as recognising them. */
const MIN_BYTES = 128

/** The texts of a user in which guards have found nothing. */
export interface KnownTextsOfUser {
  readonly user: PoolShareOwner['client']
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
  readonly #texts: OwnedEntries<PoolShareOwner['client'], true>
  /** The memory that the texts of each user take. */
  readonly #allocations = new Map<PoolShareOwner['client'], MemoryAllocation>()
  /**
   * A number for each combination of guards and their actions, because a text may pass one and not another.
   */
  readonly #screens = new WeakMap<TextScreen, number>()
  #nextScreen = 0

  /** `memory`: the memory of remembered texts counts against the shares of their users. */
  constructor(memory: RequestMemory, { maxOfUser = MAX_OF_USER, maxTexts = MAX_TEXTS } = {}) {
    this.#memory = memory
    this.#maxOfUser = maxOfUser
    this.#maxTexts = maxTexts
    this.#texts = new OwnedEntries((client) => this.#freeMemory(client))
  }

  /** Number of remembered texts of all users. */
  get size(): number {
    return this.#texts.size
  }

  of(owner: PoolShareOwner): KnownTextsOfUser {
    return {
      user: owner.client,
      nameOf: (screen, bytes, readAs) => {
        if (bytes.length < MIN_BYTES) return undefined
        const digest = hash('sha256', bytes, 'base64url')
        // A text is by far the most frequent, and needs no second hash.
        const name = readAs === 'text' ? digest : hash('sha256', `${digest} ${readAs}`, 'base64url')
        return `${this.#screenId(screen)} ${name}`
      },
      has: (name) => {
        if (!this.#texts.get(owner.client, name)) return false
        this.#texts.set(owner.client, name, true, this.#maxTexts)
        return true
      },
      add: (name) => this.#add(owner, name),
    }
  }

  #add({ client, key }: PoolShareOwner, name: string): void {
    if (!this.#texts.get(client, name)) {
      const allocation = this.#allocations.get(client) ?? new MemoryAllocation({ client, key })
      // If there is no memory for the text, it is not remembered.
      if (!this.#memory.take(allocation, TEXT_BYTES)) return
      this.#allocations.set(client, allocation)
      if (this.#texts.countOf(client) >= this.#maxOfUser) this.#texts.removeOldest(client)
    }
    this.#texts.set(client, name, true, this.#maxTexts)
  }

  #freeMemory(client: PoolShareOwner['client']): void {
    const allocation = this.#allocations.get(client)
    if (!allocation) return
    this.#memory.give(allocation, TEXT_BYTES)
    if (allocation.bytes === 0) this.#allocations.delete(client)
  }

  #screenId(screen: TextScreen): number {
    let id = this.#screens.get(screen)
    if (id === undefined) this.#screens.set(screen, (id = this.#nextScreen++))
    return id
  }
}
