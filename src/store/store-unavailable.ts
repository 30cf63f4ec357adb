/**
 * The database could not take the work: it is full, locked, broken or closed. Nothing of the operation was kept, and the
 * same call may succeed later.
 */
export class StoreUnavailable extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'StoreUnavailable'
  }
}
