import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Response } from '@sluice/http1'
import { GatewayError } from '../errors.ts'
import { MemoryAllocation, RequestMemory } from '../limits/request-memory.ts'
import type { PoolShareOwner } from '../limits/fair-pool.ts'
import { boundaryOf, isForm } from '@sluice/wire/multipart'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { Request } from '../http/request.ts'
import { isMediaType } from '../upstreams/media-type.ts'
import { type BodySink, FileSink, type FormContent, FormSink, LargeSink, MemorySink } from './body-sinks.ts'
import { type BodySource, PendingBody, SlowBodies } from './slow-bodies.ts'
import type { Spool } from './spool.ts'
import { ZstdFrames } from './zstd-frames.ts'

/** Memory of a decompressor in bytes, independent of the size of the body. */
const DECODER_BYTES = 64 * 1024

/** Number of copies of a request during its conversion: the parsed one, and the request that is sent. */
const CONVERSION_COPIES = 2
/** Size in bytes up to which no memory is allocated for the copies of a request. */
const SMALL_CONVERSION_BYTES = 4 * 1024 * 1024
/** Maximum milliseconds for which a conversion waits for memory that others hold. */
const CONVERSION_WAIT_MS = 10_000

const DECODERS = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['br', createBrotliDecompress],
  ['deflate', createInflate],
  ['zstd', () => new ZstdFrames()],
])

/** A decoded request body. Its memory and disk space are allocated until `release`. */
interface StoredBody {
  /** The memory that is allocated for the body. */
  readonly allocation: MemoryAllocation
  /** Allocates memory for more bytes. Throws `overloaded` if none is left for the client, and after `release`. */
  readonly hold: (bytes: number) => void
  /**
   * Allocates memory for the copies that the conversion of a request with `bytes` bytes makes; only the first
   * call allocates. Returns a promise if the allocation has to wait, which rejects with `overloaded` after
   * `CONVERSION_WAIT_MS`.
   */
  readonly holdCopies: (bytes: number) => Promise<void> | undefined
  readonly release: () => void
}

/** A JSON body. */
export interface Body extends StoredBody {
  readonly bytes: Buffer
}

/** A body of `multipart/form-data`. */
export interface FormBody extends StoredBody, FormContent {
  /** The client's `content-type` header, which contains the boundary of the parts. */
  readonly contentType: string
}

/** A request, and the response on which `100 Continue` can be sent. */
export interface HttpExchange {
  readonly request: Request
  readonly response: Response
}

/** Memory of something that arrives like a body, but not in a request. */
export interface BodyArrival {
  /** Takes memory for more bytes; returns false if none is left for the client. */
  add(bytes: number): boolean
  /** Returns the memory, and stops watching. */
  end(): void
}

/** Options for reading a body. */
export interface BodyOptions {
  /** Owner of the memory and disk space of the body. */
  readonly owner: PoolShareOwner
  /** Maximum size in decoded bytes. */
  readonly limit: number
  /** Whether a body with a content encoding (such as gzip) is refused. */
  readonly isPlain?: boolean
}

/**
 * Reads request bodies. Each has a maximum size, and all bodies of a client share a maximum of memory and
 * disk space.
 */
export class BodyReader {
  readonly #slow = new SlowBodies()
  readonly #memory: RequestMemory
  readonly #spool: Spool

  constructor(memory: RequestMemory, spool: Spool) {
    this.#memory = memory
    this.#spool = spool
  }

  /**
   * Returns the decoded JSON body if it has arrived completely; otherwise a promise of it. Sends `100 Continue` first if the
   * client expects it. Errors, thrown or as a rejection:
   * `request_too_large` above the maximum; `unsupported_media_type` for an unsupported content type or
   * encoding; `request_timeout` for a body that arrives too slowly, or stalls while others need its memory;
   * `overloaded` if the client has used its share or no memory is left.
   */
  read(exchange: HttpExchange, options: BodyOptions): Body | Promise<Body> {
    requireJson(exchange.request.headers['content-type'])
    const body = this.#newBody(exchange.response, options)
    const stored = this.#takeStored(exchange.request, options, body.allocation)
    if (stored) return { ...body, bytes: stored }
    return this.#receive(exchange, options, body.allocation, new MemorySink()).then((bytes) => ({
      ...body,
      bytes,
    }))
  }

  /**
   * Returns a body that has arrived completely. Undefined if it has not, if it must be decoded, if the client expects a
   * 100, or if no memory is free.
   */
  #takeStored(request: Request, { limit }: BodyOptions, allocation: MemoryAllocation): Buffer | undefined {
    const { 'content-encoding': encoding, 'content-length': length, expect } = request.headers
    const size = Number(length)
    if (encoding !== undefined || expect !== undefined || !(size <= limit)) return undefined
    if (!request.isComplete || !this.#memory.take(allocation, size)) return undefined
    const pieces = new ChunkList()
    for (const piece of request.takeStored()) pieces.add(piece)
    return pieces.take()
  }

  /**
   * Resolves to the decoded form, with the same limits and errors as for a JSON body. Rejects with
   * `invalid_request` if the body is not a form. A large form is stored on disk.
   */
  async readForm(exchange: HttpExchange, options: BodyOptions): Promise<FormBody> {
    const contentType = exchange.request.headers['content-type'] ?? ''
    if (!isForm(contentType) || !isMediaType(contentType.trim())) throw noForm()
    const sink = new FormSink(boundaryOf(contentType), () => this.#spool.newFile(options.owner))
    const body = this.#newBody(exchange.response, options)
    const content = await this.#receive(exchange, options, body.allocation, sink)
    const release = (): void => {
      body.release()
      sink.drop()
    }
    return { ...body, release, ...content, contentType: contentType.trim() }
  }

  /**
   * Reads a JSON body that may be larger than memory, and is stored like a form: as one of a single part. Rejects like `read`.
   */
  async readLarge(exchange: HttpExchange, options: BodyOptions): Promise<FormBody> {
    requireJson(exchange.request.headers['content-type'])
    const sink = new LargeSink(() => this.#spool.newFile(options.owner))
    const body = this.#newBody(exchange.response, options)
    const content = await this.#receive(exchange, options, body.allocation, sink)
    const release = (): void => {
      body.release()
      sink.drop()
    }
    return { ...body, release, ...content, contentType: 'application/json' }
  }

  /**
   * Writes the decoded body to a new file, within the limits of `options`. The caller removes the file, even
   * an incomplete one.
   */
  async readFile(exchange: HttpExchange, path: string, options: BodyOptions): Promise<void> {
    const file = this.#spool.newNamedFile(options.owner, path)
    try {
      const { allocation, release } = this.#newBody(exchange.response, options)
      await this.#receive(exchange, options, allocation, new FileSink(file))
      release()
    } finally {
      // The file is closed before this method returns, so that the caller can remove it.
      await file.close()
    }
  }

  /**
   * Watches a message that arrives on a connection: it is counted, and may be too slow or stall, like a body. `refuse` is
   * called with such an error, after which the arrival has ended.
   */
  arrival(connection: BodySource, owner: PoolShareOwner, refuse: (error: GatewayError) => void): BodyArrival {
    const allocation = new MemoryAllocation(owner)
    const end = (): void => {
      unwatch()
      this.#memory.give(allocation, allocation.bytes)
    }
    const pending = new PendingBody(connection, allocation, (error) => {
      end()
      refuse(error)
    })
    const unwatch = this.#slow.watch(pending)
    return { add: (bytes) => this.#take(pending, bytes), end }
  }

  #newBody(response: Response, { owner }: BodyOptions): StoredBody {
    const allocation = new MemoryAllocation(owner)
    let copies = 0
    let isReleased = false
    return {
      allocation,
      hold: (more) => {
        // Work that goes on after the call could take memory that is never returned.
        if (isReleased || !this.#take({ allocation, stallRatio: 1 }, more)) throw busy()
      },
      holdCopies: (bytes) => {
        if (copies > 0 || bytes <= SMALL_CONVERSION_BYTES) return
        copies = CONVERSION_COPIES * (bytes - SMALL_CONVERSION_BYTES)
        return this.#holdInTurn(allocation, copies, response)
      },
      release: () => {
        isReleased = true
        this.#memory.give(allocation, allocation.bytes)
      },
    }
  }

  async #holdInTurn(allocation: MemoryAllocation, bytes: number, response: Response): Promise<void> {
    let unsubscribe: (() => void) | undefined
    const onWait = (giveUp: () => void): void => {
      unsubscribe = response.onClosed(giveUp)
    }
    const isTaken = await this.#memory.takeInTurn(
      allocation,
      bytes,
      'conversions',
      onWait,
      response.isAborted ? 0 : CONVERSION_WAIT_MS,
    )
    unsubscribe?.()
    if (!isTaken) throw busy()
  }

  #receive<Content>(
    { request, response }: HttpExchange,
    { limit, isPlain = false }: BodyOptions,
    allocation: MemoryAllocation,
    sink: BodySink<Content>,
  ): Promise<Content> {
    const newDecoder = decoderFor(request.headers['content-encoding'], isPlain)
    if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit)
    // An HTTP/1.0 client would read `100 Continue` as the final response.
    if (request.headers.expect !== undefined && request.version === '1.1') response.writeContinue()
    return new Promise((resolve, reject) => {
      let state: 'coming' | 'complete' | 'over' = 'coming'
      let decoder: Transform | undefined
      /** Number of promises returned by the sink that are not settled yet. */
      let unsettled = 0
      const over = (): void => {
        state = 'over'
        unwatch()
      }
      const refuse = (error: unknown): void => {
        if (state === 'over') return
        over()
        this.#memory.give(allocation, allocation.bytes)
        sink.drop()
        decoder?.destroy()
        request.discard()
        reject(error)
      }
      const pending = new PendingBody(request, allocation, refuse, () => sink.length)
      const unwatch = this.#slow.watch(pending)
      const finish = (): void => {
        if (state !== 'complete' || unsettled > 0) return
        let content: Content
        const held = sink.heldBytes
        try {
          content = sink.finish()
        } catch (error) {
          return refuse(error)
        }
        over()
        this.#memory.give(allocation, allocation.bytes - held)
        // Bytes after the end of the encoded body are ignored.
        request.discard()
        resolve(content)
      }
      const settled = (bytes: number): void => {
        unsettled -= 1
        if (state === 'over') return
        this.#memory.give(allocation, bytes)
        if (unsettled === 0 && state === 'coming') (decoder ?? request).resume()
        finish()
      }
      const onChunk = (bytes: Buffer): void => {
        if (state !== 'coming') return
        if (sink.length + bytes.length > limit) return refuse(tooLarge(limit))
        if (!this.#take(pending, bytes.length)) return refuse(busy())
        try {
          const taking = sink.add(bytes)
          if (!taking) return
          unsettled += 1
          ;(decoder ?? request).pause()
          taking.then(settled, refuse)
        } catch (error) {
          refuse(error)
        }
      }
      const onEnd = (): void => {
        if (state === 'coming') state = 'complete'
        finish()
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
          if (state === 'coming' && !decoding.write(bytes)) request.pause()
        },
        onEnd: () => decoding.end(),
        onAbort,
      })
    })
  }

  /** Allocates memory for more bytes, if necessary by refusing stalled bodies. */
  #take(requester: Pick<PendingBody, 'allocation' | 'stallRatio'>, bytes: number): boolean {
    while (!this.#memory.take(requester.allocation, bytes))
      if (!this.#slow.refuseStalled(requester, this.#memory)) return false
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

function noForm(): GatewayError {
  return new GatewayError(
    'unsupported_media_type',
    'the request body is expected as a form, with "content-type: multipart/form-data; boundary=…"',
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
