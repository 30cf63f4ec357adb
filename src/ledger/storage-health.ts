/**
 * Part of what a call needs to be charged: the file that this process writes, or the bank that it shares with
 * other processes.
 */
export type StoragePart = 'file' | 'bank'

/** Whether calls can be charged at this moment, by the last write to each part of the storage. */
export class StorageHealth {
  /** Called when the first part fails, and when none does any more. */
  onChange: () => void = () => {}
  readonly #failures = new Map<StoragePart, Error>()

  /** The error of a part that cannot be written; undefined while all can. */
  get failure(): Error | undefined {
    return this.#failures.values().next().value
  }

  get isOk(): boolean {
    return this.#failures.size === 0
  }

  /** Notes the outcome of a write; `failure` is undefined for one that is durable. */
  note(part: StoragePart, failure: Error | undefined): void {
    const wasOk = this.isOk
    if (failure) this.#failures.set(part, failure)
    else this.#failures.delete(part)
    if (this.isOk !== wasOk) this.onChange()
  }
}
