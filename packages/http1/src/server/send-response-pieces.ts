import type { ResponseHeaders } from './response-head.ts'
import type { Response } from './response.ts'

/**
 * Sends a response with status 200 piece by piece, as fast as the client reads. An error before the first
 * piece rejects, and nothing is sent; a later error breaks the connection, so that a partial response is not
 * taken for a complete one. A client that disconnects is not an error.
 */
export async function sendResponsePieces(
  response: Response,
  headers: ResponseHeaders,
  given: AsyncIterable<string | Buffer>,
): Promise<void> {
  const pieces = given[Symbol.asyncIterator]()
  try {
    const first = await pieces.next()
    response.writeHead(200, headers)
    for (let piece = first; !piece.done && !response.isAborted; piece = await pieces.next()) {
      const { value } = piece
      if (!response.write(typeof value === 'string' ? Buffer.from(value) : value)) await drained(response)
      if (response.isHeadOnly) break
    }
    response.end()
  } finally {
    await pieces.return?.()
  }
}

/** Resolves when the waiting bytes are sent, or the client has disconnected. */
function drained(response: Response): Promise<void> {
  return new Promise((resolve) => {
    const removeListener = response.onClosed(resolve)
    response.whenDrained(() => {
      removeListener()
      resolve()
    })
  })
}
