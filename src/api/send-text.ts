import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { TextKind } from './endpoint.ts'

/**
 * Answers with text, piece by piece as the caller reads it. What goes wrong before the first piece rejects with nothing
 * sent; later, the connection breaks off, so that what came is not taken for all of it. A caller who leaves is no error.
 */
export async function sendText(
  response: ServerResponse,
  { type, filename }: TextKind,
  headers: OutgoingHttpHeaders,
  text: AsyncIterable<string>,
): Promise<void> {
  const pieces = text[Symbol.asyncIterator]()
  const first = await pieces.next()
  const saved = filename === undefined ? {} : { 'content-disposition': `attachment; filename="${filename}"` }
  response.writeHead(200, { 'content-type': type, ...saved, ...headers })
  try {
    await pipeline(allOf(first, pieces), response)
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

async function* allOf(
  first: IteratorResult<string, unknown>,
  rest: AsyncIterator<string>,
): AsyncGenerator<string, void, undefined> {
  try {
    for (let piece = first; !piece.done; piece = await rest.next()) yield piece.value
  } finally {
    await rest.return?.()
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE'
}
