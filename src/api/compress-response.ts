import { Readable, pipeline } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import type { ResponseHeaders } from '@sluice/http1'
import { chooseEncoding, type Encoding } from '../http/content-encoding.ts'
import type { Request } from '../http/request.ts'

/** Responses of at most this many bytes are not compressed. */
const MIN_BYTES = 1024

/** Compression levels at which compressing takes about as much time as serializing the JSON. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }
const GZIP = { level: 4 }

const WHOLE = { br: promisify(brotliCompress), gzip: promisify(gzip) }

/** The encoding that a client accepts. `docs/api.md: Envelopes`. */
export function acceptedEncoding({ headers }: Pick<Request, 'headers'>): Encoding {
  return chooseEncoding(headers['accept-encoding'])
}

/** A response body, possibly compressed, and the headers that say so. */
export interface EncodedBody {
  readonly body: Buffer
  readonly headers: ResponseHeaders
}

/**
 * Compresses a body off the main thread, unless it is small. `encoding` is undefined if the response must not
 * vary with `accept-encoding`.
 */
export async function encodeBody(body: Buffer, encoding: Encoding | undefined): Promise<EncodedBody> {
  if (encoding === undefined) return { body, headers: {} }
  const headers = { vary: 'accept-encoding' }
  if (encoding === 'identity' || body.length <= MIN_BYTES) return { body, headers }
  const encoded = await (encoding === 'br' ? WHOLE.br(body, BROTLI) : WHOLE.gzip(body, GZIP))
  return { body: encoded, headers: { ...headers, 'content-encoding': encoding } }
}

/** The headers that state the encoding of a response that is sent in pieces. */
export function encodingHeaders(encoding: Encoding | undefined): ResponseHeaders {
  if (encoding === undefined) return {}
  return { vary: 'accept-encoding', ...(encoding !== 'identity' && { 'content-encoding': encoding }) }
}

/** Compresses a response while it is sent. */
export function encodeResponsePieces(
  pieces: AsyncIterable<string>,
  encoding: Encoding | undefined,
): AsyncIterable<string | Buffer> {
  if (encoding === undefined || encoding === 'identity') return pieces
  const encoder = encoding === 'br' ? createBrotliCompress(BROTLI) : createGzip(GZIP)
  // If `pieces` fails, the encoder is destroyed, so that its reader gets the error too.
  return pipeline(Readable.from(pieces, { objectMode: true }), encoder, () => {})
}
