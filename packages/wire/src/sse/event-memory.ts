/** Maximum bytes buffered of one event that must be complete to be read. */
export const MAX_EVENT_BYTES = 33_554_432

/** Accounts for the memory of the incomplete event of one stream. `docs/api.md: Limits`. */
export interface EventMemory {
  /** Records how many bytes of an event are buffered now. */
  resize(bytes: number): void
}
