/** Maximum number of texts of a stream that are checked while they arrive in pieces. */
export const MAX_STREAMED_TEXTS = 1024

/** Values for the texts of a stream that are still arriving in pieces, by the keys of these texts. */
export class StreamedTextMap<Value> {
  readonly #groups = new Map<string, Map<string, Value>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  get(key: string): Value | undefined {
    return this.#groups.get(groupOf(key))?.get(key)
  }

  set(key: string, value: Value): void {
    const name = groupOf(key)
    let group = this.#groups.get(name)
    if (!group) this.#groups.set(name, (group = new Map()))
    if (!group.has(key)) this.#size += 1
    group.set(key, value)
  }

  delete(key: string): void {
    const name = groupOf(key)
    const group = this.#groups.get(name)
    if (!group?.delete(key)) return
    this.#size -= 1
    if (group.size === 0) this.#groups.delete(name)
  }

  /**
   * Yields the texts that have ended, with their values. An end `''` ends all texts, `group/` those of a
   * group, and any other end the text with this key.
   */
  *endedBy(ends: Iterable<string>): Generator<[key: string, value: Value]> {
    for (const end of ends) {
      if (end === '') {
        for (const group of this.#groups.values()) yield* group
        return
      }
      const group = this.#groups.get(groupOf(end))
      if (end.endsWith('/')) yield* group ?? []
      else {
        const value = group?.get(end)
        if (value !== undefined) yield [end, value]
      }
    }
  }
}

/** Whether these ends include the text with this key; see `endedBy`. */
export function isStreamedTextEnded(ends: ReadonlySet<string>, key: string): boolean {
  return ends.has('') || ends.has(groupOf(key)) || ends.has(key)
}

function groupOf(key: string): string {
  return key.slice(0, key.indexOf('/') + 1)
}
