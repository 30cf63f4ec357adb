/** Irregularities of responses that the usage log reports. */
export const CALL_NOTES = [
  /** The provider reported a regular end, but the arguments of a tool call were truncated. */
  'cut_arguments',
] as const

/** Note about a response in the usage log. */
export type CallNote = (typeof CALL_NOTES)[number]
