import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { GatewayError } from '../errors.ts'
import type { Client } from '../limits/shared-pool.ts'
import { Gathered } from '../protocols/gathered.ts'
import type { Request } from '../server/request.ts'
import type { Response } from '../server/response.ts'
import { type BodyRoom, Holding } from './body-room.ts'
import { Reading, SlowBodies } from './slow-bodies.ts'
import { ZstdFrames } from './zstd-frames.ts'

/** Memory of a decoder, which it has whether much comes of it or not. */
const DECODER_BYTES = 64 * 1024

const DECODERS = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['br', createBrotliDecompress],
  ['deflate', createInflate],
  ['zstd', () => new ZstdFrames()],
])

/** A request's body, decoded. It holds room for bodies until it is released. */
export interface Body {
  readonly bytes: Buffer
  release(): void
}

/** A request, and the answer to it, by which a caller that waits is told to send its body. */
export interface Asking {
  readonly request: Request
  readonly response: Response
}

/** Terms on which a body is read. */
export interface BodyTerms {
  /** The client whose share of the memory for bodies it takes: a token's id, or a block of addresses. */
  readonly client: Client
  /** Decoded bytes that it may have. */
  readonly limit: number
  /** It is read as it comes: with a content encoding it is refused. */
  readonly isPlain?: boolean
}

/** Reads JSON request bodies, each up to a limit, and all of a client's up to its share of the memory. */
export class Bodies {
  readonly #slow = new SlowBodies()
  readonly #room: BodyRoom

  constructor(room: BodyRoom) {
    this.#room = room
  }

  /**
   * Resolves to the decoded body; a caller that waits for leave to send it gets that. Errors:
   * `request_too_large` over its limit; `unsupported_media_type` for another content type or encoding than is
   * read; `request_timeout` where it hardly comes, or stalls while others need its memory; `overloaded` where it
   * is more than its client may hold, or than is left.
   */
  async read({ request, response }: Asking, terms: BodyTerms): Promise<Body> {
    requireJson(request.headers['content-type'])
    const decoder = decoderFor(request.headers['content-encoding'], terms.isPlain ?? false)
    if (Number(request.headers['content-length'] ?? 0) > terms.limit) throw tooLarge(terms.limit)
    // A caller of HTTP/1.0 would take it for its answer.
    if (request.headers.expect !== undefined && request.version === '1.1') response.writeContinue()
    const holding = new Holding(terms.client)
    const bytes = await this.#received(request, decoder, terms.limit, holding)
    return { bytes, release: () => this.#room.give(holding, holding.bytes) }
  }

  #received(
    request: Request,
    newDecoder: (() => Transform) | undefined,
    limit: number,
    holding: Holding,
  ): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const gathered = new Gathered()
      let over = false
      let decoder: Transform | undefined
      const refuse = (error: GatewayError): void => {
        if (over) return
        over = true
        unwatch()
        this.#room.give(holding, holding.bytes)
        decoder?.destroy()
        request.throwAway()
        reject(error)
      }
      const reading = new Reading(request, holding, refuse)
      const unwatch = this.#slow.watch(reading)
      const piece = (bytes: Buffer): void => {
        if (over) return
        if (gathered.length + bytes.length > limit) refuse(tooLarge(limit))
        else if (!this.#take(reading, bytes.length)) refuse(busy())
        else gathered.add(bytes)
      }
      const whole = (): void => {
        if (over) return
        over = true
        unwatch()
        this.#room.give(holding, holding.bytes - gathered.length)
        // Bytes after the end of the encoded body are ignored.
        request.throwAway()
        resolve(gathered.take())
      }
      const cut = (): void => refuse(cutShort())
      if (!newDecoder) return request.read({ piece, whole, cut })
      if (!this.#take(reading, DECODER_BYTES)) return refuse(busy())
      const decoding = newDecoder()
      decoder = decoding
      decoding.on('data', piece)
      decoding.on('end', whole)
      decoding.on('error', () => refuse(undecodable()))
      decoding.on('drain', () => request.resume())
      request.read({
        piece(bytes) {
          if (!over && !decoding.write(bytes)) request.pause()
        },
        whole: () => decoding.end(),
        cut,
      })
    })
  }

  /** Takes room for so many bytes more, if need be that of bodies that have stalled. */
  #take(reading: Reading, bytes: number): boolean {
    while (!this.#room.take(reading.holding, bytes))
      if (!this.#slow.refuseStalled(reading, this.#room)) return false
    return true
  }
}

function requireJson(contentType: string | undefined): void {
  if (contentType === undefined || /^\s*application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(contentType)) return
  throw new GatewayError(
    'unsupported_media_type',
    'the request body is expected as JSON, with "content-type: application/json"',
  )
}

function decoderFor(contentEncoding: string | undefined, isPlain: boolean): (() => Transform) | undefined {
  const encoding = (contentEncoding ?? 'identity').trim().toLowerCase()
  if (encoding === 'identity' || encoding === '') return undefined
  if (isPlain)
    throw new GatewayError(
      'unsupported_media_type',
      'the request body is read here without a content-encoding',
    )
  const decoder = DECODERS.get(encoding)
  if (decoder) return decoder
  throw new GatewayError(
    'unsupported_media_type',
    'this content-encoding is not read here; gzip, br, deflate, zstd and identity are',
  )
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
