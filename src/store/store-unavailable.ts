/**
 * The database could not take the work: it is full, locked, broken or closed. Nothing of the operation was
 * kept, and the same call may succeed later, unless it is `lasting`.
 */
export class StoreUnavailable extends Error {
  /** The database can no longer be relied on: no later call will be taken before it was opened anew. */
  readonly lasting: boolean

  constructor(message: string, options: { cause?: unknown; lasting?: boolean } = {}) {
    super(message, options)
    this.name = 'StoreUnavailable'
    this.lasting = options.lasting ?? false
  }
}
