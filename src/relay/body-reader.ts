import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { GatewayError } from '../errors.ts'
import type { Client } from '../limits/shared-pool.ts'
import { ChunkList } from '../protocols/sse/chunk-list.ts'
import type { Request } from '../server/request.ts'
import type { Response } from '../server/response.ts'
import { type BodyMemory, BodyAllocation } from './body-memory.ts'
import { PendingBody, SlowBodies } from './slow-bodies.ts'
import { ZstdFrames } from './zstd-frames.ts'

/** Memory of a decoder, however little it decodes. */
const DECODER_BYTES = 64 * 1024

const DECODERS = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['br', createBrotliDecompress],
  ['deflate', createInflate],
  ['zstd', () => new ZstdFrames()],
])

/** A decoded request body. Its memory is held until `release`. */
export interface Body {
  readonly bytes: Buffer
  release(): void
}

/** A request and its response, which may send `100 Continue`. */
export interface HttpExchange {
  readonly request: Request
  readonly response: Response
}

/** Conditions of reading a body. */
export interface BodyOptions {
  /** The client whose share of the memory is used: a token's id, or an address block. */
  readonly client: Client
  /** Largest size, in decoded bytes. */
  readonly limit: number
  /** A content encoding is refused. */
  readonly isPlain?: boolean
}

/** Reads JSON request bodies: each up to a limit, all of a client up to its share of the memory. */
export class BodyReader {
  readonly #slow = new SlowBodies()
  readonly #memory: BodyMemory

  constructor(memory: BodyMemory) {
    this.#memory = memory
  }

  /**
   * Resolves to the decoded body, after `100 Continue` where the client waits for it. Errors:
   * `request_too_large` over the limit; `unsupported_media_type` for a content type or encoding that is not
   * read; `request_timeout` for a body that comes too slowly, or stalls while others need its memory;
   * `overloaded` where the client may hold no more, or no memory is left.
   */
  async read({ request, response }: HttpExchange, options: BodyOptions): Promise<Body> {
    requireJson(request.headers['content-type'])
    const decoder = decoderFor(request.headers['content-encoding'], options.isPlain ?? false)
    if (Number(request.headers['content-length'] ?? 0) > options.limit) throw tooLarge(options.limit)
    // An HTTP/1.0 client would take it for the response.
    if (request.headers.expect !== undefined && request.version === '1.1') response.writeContinue()
    const allocation = new BodyAllocation(options.client)
    const bytes = await this.#receive(request, decoder, options.limit, allocation)
    return { bytes, release: () => this.#memory.give(allocation, allocation.bytes) }
  }

  #receive(
    request: Request,
    newDecoder: (() => Transform) | undefined,
    limit: number,
    allocation: BodyAllocation,
  ): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const chunks = new ChunkList()
      let isOver = false
      let decoder: Transform | undefined
      const refuse = (error: GatewayError): void => {
        if (isOver) return
        isOver = true
        unwatch()
        this.#memory.give(allocation, allocation.bytes)
        decoder?.destroy()
        request.discard()
        reject(error)
      }
      const pending = new PendingBody(request, allocation, refuse)
      const unwatch = this.#slow.watch(pending)
      const onChunk = (bytes: Buffer): void => {
        if (isOver) return
        if (chunks.length + bytes.length > limit) refuse(tooLarge(limit))
        else if (!this.#take(pending, bytes.length)) refuse(busy())
        else chunks.add(bytes)
      }
      const onEnd = (): void => {
        if (isOver) return
        isOver = true
        unwatch()
        this.#memory.give(allocation, allocation.bytes - chunks.length)
        // Bytes after the end of the encoded body are ignored.
        request.discard()
        resolve(chunks.take())
      }
      const onAbort = (): void => refuse(cutShort())
      if (!newDecoder) return request.read({ onChunk, onEnd, onAbort })
      if (!this.#take(pending, DECODER_BYTES)) return refuse(busy())
      const decoding = newDecoder()
      decoder = decoding
      decoding.on('data', onChunk)
      decoding.on('end', onEnd)
      decoding.on('error', () => refuse(undecodable()))
      decoding.on('drain', () => request.resume())
      request.read({
        onChunk(bytes) {
          if (!isOver && !decoding.write(bytes)) request.pause()
        },
        onEnd: () => decoding.end(),
        onAbort,
      })
    })
  }

  /** Takes memory for more bytes, if need be that of stalled bodies. */
  #take(pending: PendingBody, bytes: number): boolean {
    while (!this.#memory.take(pending.allocation, bytes))
      if (!this.#slow.refuseStalled(pending, this.#memory)) return false
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
  if (isPlain) throw new GatewayError('unsupported_media_type', 'this path accepts no content-encoding')
  const decoder = DECODERS.get(encoding)
  if (decoder) return decoder
  throw new GatewayError(
    'unsupported_media_type',
    'this content-encoding is not supported; gzip, br, deflate, zstd and identity are',
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
