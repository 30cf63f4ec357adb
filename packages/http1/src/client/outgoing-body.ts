/** Body of a request that is read piece by piece while it is sent, perhaps several times. */
export interface OutgoingBody {
  readonly length: number
  /** The bytes from a position on, as many as come easily, at least one; rejects if they cannot be read. */
  read(position: number): Promise<Buffer>
}
