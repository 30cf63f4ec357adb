import type { ResponseHeaders } from './response-head.ts'
import type { Response } from './response.ts'

/**
 * Sends a response of status 200 piece by piece, as the client reads. An error before the first piece rejects
 * with nothing sent; a later one breaks the connection, so that a partial response is not mistaken for a
 * complete one. A disconnecting client is no error.
 */
export async function sendPieces(
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

/** Resolves when the client has read the buffered bytes, or disconnected. */
function drained(response: Response): Promise<void> {
  return new Promise((resolve) => {
    const removeListener = response.onClosed(resolve)
    response.whenDrained(() => {
      removeListener()
      resolve()
    })
  })
}
