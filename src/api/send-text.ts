import { type Response, type ResponseHeaders, sendPieces } from '@sluice/http1'
import type { TextFormat } from './endpoint.ts'

/** Sends a text response piece by piece; see `sendPieces`. */
export function sendText(
  response: Response,
  { type, filename, isEndless }: TextFormat,
  headers: ResponseHeaders,
  text: AsyncIterable<string>,
): Promise<void> {
  const saved = filename === undefined ? {} : { 'content-disposition': `attachment; filename="${filename}"` }
  const unbuffered = isEndless ? { 'x-accel-buffering': 'no' } : {}
  return sendPieces(response, { 'content-type': type, ...saved, ...unbuffered, ...headers }, text)
}

/** Yields a text as a single piece. */
export async function* wholeText(text: string): AsyncGenerator<string, void, undefined> {
  yield await Promise.resolve(text)
}
