import type { Socket } from 'node:net'

/** How long a client may stop reading while data waits to be sent. */
export const WRITE_TIMEOUT_MS = 60_000

/** Writes bytes; false, with a timeout set, if more data waits than should. */
export function writeWithTimeout(socket: Socket, bytes: Buffer | string): boolean {
  const isBelowLimit = socket.write(bytes, 'latin1')
  if (!isBelowLimit) socket.setTimeout(WRITE_TIMEOUT_MS)
  return isBelowLimit
}

/**
 * Writes several pieces together; false, with a timeout set, if more data waits than should. Pieces that the
 * system takes at once never count, and the socket announces `drain` in no other case than this.
 */
export function writePiecesWithTimeout(socket: Socket, parts: readonly (Buffer | string)[]): boolean {
  socket.cork()
  for (const part of parts) socket.write(part, 'latin1')
  socket.uncork()
  const isDrainPending = socket.writableNeedDrain && socket.writableLength > 0
  if (isDrainPending) socket.setTimeout(WRITE_TIMEOUT_MS)
  return !isDrainPending
}
