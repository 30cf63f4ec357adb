import type { ResponseHeaders } from '../server/response-head.ts'
import type { Response } from '../server/response.ts'
import type { TextFormat } from './endpoint.ts'

/**
 * Sends a text response piece by piece, as the client reads. An error before the first piece rejects with
 * nothing sent; a later one breaks the connection, so that a partial response is not mistaken for a complete
 * one. A disconnecting client is no error.
 */
export async function sendText(
  response: Response,
  { type, filename, isEndless }: TextFormat,
  headers: ResponseHeaders,
  text: AsyncIterable<string>,
): Promise<void> {
  const pieces = text[Symbol.asyncIterator]()
  const first = await pieces.next()
  const saved = filename === undefined ? {} : { 'content-disposition': `attachment; filename="${filename}"` }
  const unbuffered = isEndless ? { 'x-accel-buffering': 'no' } : {}
  response.writeHead(200, { 'content-type': type, ...saved, ...unbuffered, ...headers })
  try {
    for (let piece = first; !piece.done && !response.isAborted; piece = await pieces.next()) {
      if (!response.write(Buffer.from(piece.value))) await drained(response)
      if (response.isHeadOnly) break
    }
    response.end()
  } finally {
    await pieces.return?.()
  }
}

/** A text as the one piece that it is sent in. */
export async function* wholeText(text: string): AsyncGenerator<string, void, undefined> {
  yield await Promise.resolve(text)
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
