/** Oddities of responses that the usage log tells. */
export const CALL_NOTES = [
  /** The provider reported a proper end, but the arguments of a tool call were cut off. */
  'cut_arguments',
] as const

/** Note on a response in the usage log. */
export type CallNote = (typeof CALL_NOTES)[number]
