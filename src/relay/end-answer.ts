import type { ServerResponse } from 'node:http'

/** How long a caller may leave what was sent to it unread. */
export const UNREAD_MS = 60_000

/** Ends a response; a caller that does not read the rest of it is not waited for. */
export function endAnswer(response: ServerResponse, last: Buffer | string): void {
  if (typeof last === 'string') response.end(last, 'latin1')
  else response.end(last)
  // A timer for what could not be sent at once only: most answers can.
  if (response.writableLength > 0) response.setTimeout(UNREAD_MS, () => response.destroy())
}
