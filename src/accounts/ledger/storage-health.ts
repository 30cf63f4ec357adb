/**
 * Part of the storage that a call needs in order to be charged: the file that this process writes, or the
 * bank that it shares with other processes.
 */
export type StoragePart = 'file' | 'bank'

/** Whether calls can be charged now, by the last write to each part of the storage. */
export class StorageHealth {
  /** Called when the first part fails, and when all parts work again. */
  onChange: () => void = () => {}
  readonly #failures = new Map<StoragePart, Error>()

  /** The error of a part that cannot be written; undefined while all can. */
  get failure(): Error | undefined {
    return this.#failures.values().next().value
  }

  get isOk(): boolean {
    return this.#failures.size === 0
  }

  /** Records the outcome of a write; `failure` is undefined if it is durable. */
  note(part: StoragePart, failure: Error | undefined): void {
    const wasOk = this.isOk
    if (failure) this.#failures.set(part, failure)
    else this.#failures.delete(part)
    if (this.isOk !== wasOk) this.onChange()
  }
}
