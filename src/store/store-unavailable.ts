/**
 * Error: the database is full, locked, broken, closed or unreachable. Nothing of the operation was kept. The
 * same operation may succeed later, unless the error is `lasting`.
 */
export class StoreUnavailable extends Error {
  /** True if the database has failed for good and refuses all operations until it is opened again. */
  readonly lasting: boolean
  /** True if the database answers but accepts no writes: the disk is full, or it is read-only. */
  readonly refusesWrites: boolean

  constructor(
    message: string,
    options: { cause?: unknown; lasting?: boolean; refusesWrites?: boolean } = {},
  ) {
    super(message, options)
    this.name = 'StoreUnavailable'
    this.lasting = options.lasting ?? false
    this.refusesWrites = options.refusesWrites ?? false
  }
}

/**
 * Error: another process uses the name of this node, because the data folder of one is a copy of the other's.
 */
export class NameTaken extends StoreUnavailable {}
