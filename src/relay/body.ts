import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { GatewayError } from '../errors.ts'
import { Gathered } from '../protocols/gathered.ts'
import type { Request } from '../server/request.ts'
import type { Response } from '../server/response.ts'
import { SlowBodies } from './slow-bodies.ts'

/** Bytes of request bodies that may be in memory at one time, all calls together. */
const ALL_BODIES_LIMIT = 256 * 1024 * 1024

const DECODERS = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['br', createBrotliDecompress],
  ['deflate', createInflate],
  ['zstd', createZstdDecompress],
])

/** A request's body, decoded. It counts against what all bodies may take until it is released. */
export interface Body {
  readonly bytes: Buffer
  release(): void
}

/** A request, and the answer to it, by which a caller that waits is told to send its body. */
export interface Asking {
  readonly request: Request
  readonly response: Response
}

/** Reads JSON request bodies, each up to a limit, all of them together up to another. */
export class Bodies {
  readonly #slow = new SlowBodies()
  #held = 0

  /**
   * The decoded body. `limit` counts decoded bytes. Over it: `request_too_large`; another content type or encoding than
   * we read: `unsupported_media_type`; one that hardly comes: `request_timeout`; too many bytes of all calls at once: `overloaded`, before the body is read where
   * its length is told. A caller that waits for leave to send its body gets it when nothing of that can be told any more.
   */
  async read({ request, response }: Asking, limit: number): Promise<Body> {
    requireJson(request.headers['content-type'])
    const decoder = decoderFor(request.headers['content-encoding'])
    const length = Number(request.headers['content-length'] ?? 0)
    if (length > limit) throw tooLarge(limit)
    if (this.#held + length > ALL_BODIES_LIMIT) throw busy()
    // A caller of HTTP/1.0 would take it for its answer.
    if (request.headers.expect !== undefined && request.version === '1.1') response.writeContinue()
    let taken = 0
    // Bytes count as they come: what is only announced takes no room from others.
    const release = (): void => {
      this.#held -= taken
      taken = 0
    }
    const take = (bytes: number): void => {
      if (this.#held + bytes > ALL_BODIES_LIMIT) throw busy()
      this.#held += bytes
      taken += bytes
    }
    try {
      return { bytes: await received(request, decoder, limit, take, this.#slow), release }
    } catch (error) {
      release()
      throw error
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

function decoderFor(contentEncoding: string | undefined): Transform | undefined {
  const encoding = (contentEncoding ?? 'identity').trim().toLowerCase()
  if (encoding === 'identity' || encoding === '') return undefined
  const decoder = DECODERS.get(encoding)
  if (decoder) return decoder()
  throw new GatewayError(
    'unsupported_media_type',
    'this content-encoding is not read here; gzip, br, deflate, zstd and identity are',
  )
}

function received(
  request: Request,
  decoder: Transform | undefined,
  limit: number,
  take: (bytes: number) => void,
  slow: SlowBodies,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const gathered = new Gathered()
    let over = false
    const refuse = (error: GatewayError): void => {
      if (over) return
      over = true
      unwatch()
      decoder?.destroy()
      request.throwAway()
      reject(error)
    }
    const piece = (bytes: Buffer): void => {
      if (over) return
      if (gathered.length + bytes.length > limit) return refuse(tooLarge(limit))
      try {
        take(bytes.length)
        gathered.add(bytes)
      } catch (error) {
        refuse(error as GatewayError)
      }
    }
    const whole = (): void => {
      if (over) return
      over = true
      unwatch()
      // What follows the end of what was encoded is nobody's.
      request.throwAway()
      resolve(gathered.take())
    }
    const cut = (): void => refuse(cutShort())
    const unwatch = slow.watch(request, refuse)
    if (!decoder) return request.read({ piece, whole, cut })
    decoder.on('data', piece)
    decoder.on('end', whole)
    decoder.on('error', () => refuse(undecodable()))
    decoder.on('drain', () => request.resume())
    request.read({
      piece(bytes) {
        if (!over && !decoder.write(bytes)) request.pause()
      },
      whole: () => decoder.end(),
      cut,
    })
  })
}

function tooLarge(limit: number): GatewayError {
  return new GatewayError('request_too_large', `the request body is larger than ${limit} bytes`)
}

function busy(): GatewayError {
  return new GatewayError('overloaded', 'too many requests are being read at the moment; try again', {
    retryAfter: 1,
  })
}

function undecodable(): GatewayError {
  return new GatewayError(
    'invalid_request',
    'the request body cannot be decoded as its content-encoding says',
  )
}

function cutShort(): GatewayError {
  return new GatewayError('invalid_request', 'the request body ended before it was complete')
}
