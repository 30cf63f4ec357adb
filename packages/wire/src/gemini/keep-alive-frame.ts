/**
 * Comment that keeps a stream of events alive. Gemini has no event without content, and clients skip
 * comments. The comment keeps the connection in use, although a client that waits for an event does not see
 * it.
 */
export const KEEP_ALIVE_FRAME = ': keep-alive\r\n\r\n'
