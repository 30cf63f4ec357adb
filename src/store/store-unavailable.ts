/**
 * Error: the database is full, locked, damaged, closed or unreachable. The operation had no effect. It may
 * succeed later, unless the error is `lasting`.
 */
export class StoreUnavailable extends Error {
  /** Whether the database has failed permanently. It refuses all operations until it is opened again. */
  readonly lasting: boolean
  /** Whether the database can be read but not written: the disk is full, or the database is read-only. */
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
 * Error: another process uses the name of this node. This happens if one data folder is a copy of the other.
 */
export class NodeNameTaken extends StoreUnavailable {}

/** Error: DATABASE_URL must be changed, or the server that it names; waiting does not help. */
export class DatabaseAddressError extends StoreUnavailable {}
