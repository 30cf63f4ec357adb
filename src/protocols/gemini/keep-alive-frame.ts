/**
 * Comment that keeps a stream of events alive. This wire has no event without a part, and clients skip
 * comments; to a client that waits for an event the comment is none, but its connection stays in use.
 */
export const KEEP_ALIVE_FRAME = ': keep-alive\r\n\r\n'
