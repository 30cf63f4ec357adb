/** Body of a request that is read piece by piece while it is sent; a retry reads it again. */
export interface OutgoingBody {
  readonly length: number
  /**
   * Returns bytes from a position on: at least one, and as many as one read provides. Rejects if they cannot
   * be read.
   */
  read(position: number): Promise<Buffer>
  /** Returns all bytes if they are in memory, else undefined. */
  whole?(): Buffer | undefined
}
