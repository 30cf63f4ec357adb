/** The dimensions by which daily sums can be grouped; `key` is an API key. */
export const USAGE_DIMENSIONS = ['model', 'user', 'key', 'channel', 'day'] as const

/** A dimension of usage. */
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number]
