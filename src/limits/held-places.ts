import type { SlotReport } from './place-peers.ts'

/**
 * Calls under way of several processes, in the memory of one, following the rules of `SLOT_SCRIPT`. Places
 * of a process that has ended are dropped at once.
 */
export class HeldPlaces {
  readonly #subjects = new Map<string, Map<string, number>>()

  /** Replaces what is known of a node's places, and takes free ones; returns the number taken. */
  exchange(node: string, subject: string, { held, want, max }: SlotReport): number {
    const places = this.#subjects.get(subject) ?? new Map<string, number>()
    let others = 0
    for (const [name, count] of places) if (name !== node) others += count
    const granted = Math.max(0, Math.min(want, max - others - held))
    if (held + granted > 0) this.#subjects.set(subject, places.set(node, held + granted))
    else this.#remove(subject, places, node)
    return granted
  }

  /** Drops all places of a node. */
  drop(node: string): void {
    for (const [subject, places] of this.#subjects) this.#remove(subject, places, node)
  }

  #remove(subject: string, places: Map<string, number>, node: string): void {
    places.delete(node)
    if (places.size === 0) this.#subjects.delete(subject)
  }
}
