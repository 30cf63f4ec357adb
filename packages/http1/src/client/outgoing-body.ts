/** Body of a request that is read piece by piece while it is sent, perhaps several times. */
export interface OutgoingBody {
  readonly length: number
  /** Bytes from a position on: at least one, and as many as one read provides. Rejects if they cannot be read. */
  read(position: number): Promise<Buffer>
  /** All bytes, if they are in memory. */
  whole?(): Buffer | undefined
}
