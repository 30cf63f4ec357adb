/** Maximum bytes held of one event that must be complete to be read. */
export const MAX_EVENT_BYTES = 33_554_432

/** Account of the memory for the incomplete event of one stream. `docs/api.md: Limits`. */
export interface EventMemory {
  /** Notes how many bytes of an event are held. */
  resize(bytes: number): void
}
