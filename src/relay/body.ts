import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { GatewayError } from '../errors.ts'

/** Request bodies that may be in memory at one time, all calls together. */
const ALL_BODIES_LIMIT = 256 * 1024 * 1024
/** What a body of unknown length counts until it is read. */
const UNKNOWN_LENGTH = 64 * 1024

type Decode = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

const DECODERS = new Map<string, Decode>([
  ['gzip', promisify(gunzip)],
  ['br', promisify(brotliDecompress)],
  ['deflate', promisify(inflate)],
  ['zstd', promisify(zstdDecompress)],
])

/** Reads JSON request bodies, each up to a limit, all of them together up to another. */
export class Bodies {
  #reserved = 0

  /**
   * The decoded body. `limit` counts decoded bytes. Over it: `request_too_large`; another content type or encoding than
   * we read: `unsupported_media_type`; too many bodies at once: `overloaded`, before a byte of it is read.
   */
  async read(request: IncomingMessage, limit: number): Promise<Buffer> {
    requireJson(request.headers['content-type'])
    const decode = decoderFor(request.headers['content-encoding'])
    const announced = request.headers['content-length']
    const length = announced === undefined ? UNKNOWN_LENGTH : Number(announced)
    if (length > limit) throw tooLarge(limit)
    if (this.#reserved + length > ALL_BODIES_LIMIT) throw busy()
    this.#reserved += length
    try {
      const bytes = await receive(request, limit)
      return decode ? await decoded(bytes, decode, limit) : bytes
    } finally {
      this.#reserved -= length
    }
  }
}

function requireJson(contentType: string | undefined): void {
  if (contentType === undefined || /^\s*application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(contentType)) return
  throw new GatewayError(
    'unsupported_media_type',
    'the request body is expected as JSON, with "content-type: application/json"',
  )
}

function decoderFor(contentEncoding: string | undefined): Decode | undefined {
  const encoding = (contentEncoding ?? 'identity').trim().toLowerCase()
  if (encoding === 'identity' || encoding === '') return undefined
  const decode = DECODERS.get(encoding === 'x-gzip' ? 'gzip' : encoding)
  if (decode) return decode
  throw new GatewayError(
    'unsupported_media_type',
    'this content-encoding is not read here; gzip, br, deflate, zstd and identity are',
  )
}

function receive(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    let over = false
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= limit) chunks.push(chunk)
      else if (!over) {
        over = true
        reject(tooLarge(limit))
      }
    })
    request.on('end', () => {
      over = true
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))
    })
    // Comes after every request; an error that nobody sees would cost more than reading one.
    request.on('close', () => {
      if (!over) reject(cutShort())
    })
    request.on('error', () => {
      if (!over) reject(cutShort())
    })
  })
}

async function decoded(bytes: Buffer, decode: Decode, limit: number): Promise<Buffer> {
  try {
    return await decode(bytes, { maxOutputLength: limit })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limit)
    throw new GatewayError(
      'invalid_request',
      'the request body cannot be decoded as its content-encoding says',
    )
  }
}

function tooLarge(limit: number): GatewayError {
  return new GatewayError('request_too_large', `the request body is larger than ${limit} bytes`)
}

function busy(): GatewayError {
  return new GatewayError('overloaded', 'too many requests are being read at the moment; try again', {
    retryAfter: 1,
  })
}

function cutShort(): GatewayError {
  return new GatewayError('invalid_request', 'the request body ended before it was complete')
}
