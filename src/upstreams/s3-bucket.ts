import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, type Dispatcher, request } from 'undici'
import type { BucketCredentials, BucketLocation } from '../domain/bucket.ts'
import { lookupBlockingMetadata } from './lookup-blocking-metadata.ts'
import { canonicalQuery, encodeSegment, signatureHeaders } from './signature-v4.ts'

/** Timeouts in milliseconds of a request including its retries. */
const TIMEOUT_MS = { GET: 15_000, PUT: 30_000, DELETE: 15_000 } as const
const CONNECT_MS = 5_000
/**
 * Maximum number of attempts at a request that fails temporarily, and the base of the pause between them in
 * milliseconds.
 */
const ATTEMPTS = 3
const PAUSE_MS = 200
/** Maximum bytes that are read of an error response. */
const MAX_ERROR_BYTES = 64 * 1024

type Method = keyof typeof TIMEOUT_MS

interface Answer {
  readonly status: number
  readonly body: Buffer
  /** Size of the whole object in bytes, if a response to a read of a part states it. */
  readonly objectBytes: number | undefined
}

/** What a request has in addition to its method and the name of its object. */
interface S3Request {
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Buffer | undefined
  /** Maximum bytes that are read of the response. */
  readonly maxBytes?: number
}

/** Requests to a bucket on an S3-compatible server, which is not trusted: responses are read up to a limit. */
export class S3Bucket {
  readonly #place: BucketLocation
  readonly #key: BucketCredentials
  readonly #agent = new Agent({
    allowH2: false,
    maxHeaderSize: 16_384,
    headersTimeout: TIMEOUT_MS.PUT,
    bodyTimeout: TIMEOUT_MS.PUT,
    connect: { timeout: CONNECT_MS, lookup: lookupBlockingMetadata },
  })

  /** Sends nothing yet. */
  constructor(place: BucketLocation, key: BucketCredentials) {
    this.#place = place
    this.#key = key
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }

  /**
   * Sends a request and rejects unless it succeeds. Removing an object that no longer exists counts as
   * success.
   */
  async accepted(method: Method, name: string, options: S3Request = {}): Promise<Answer> {
    const answer = await this.send(method, name, options)
    if (answer.status >= 200 && answer.status < 300) return answer
    if (method === 'DELETE' && answer.status === 404) return answer
    throw refusalOf(answer)
  }

  /**
   * Sends a request, and repeats it after a temporary failure. The error never contains text from the
   * response body, except for a short error code.
   */
  async send(method: Method, name: string, options: S3Request): Promise<Answer> {
    const signal = AbortSignal.timeout(TIMEOUT_MS[method])
    for (let attempt = 1; ; attempt += 1) {
      let failure: Error
      try {
        const answer = await this.#attempt(method, name, { ...options, signal })
        if (answer.status < 500 && answer.status !== 429) return answer
        failure = refusalOf(answer)
      } catch (error) {
        failure =
          error instanceof Refused ? error : new Error(`the bucket cannot be reached (${causeOf(error)})`)
      }
      if (attempt === ATTEMPTS || signal.aborted || failure instanceof Refused) throw failure
      await sleep(PAUSE_MS * 2 ** attempt * (0.5 + Math.random() / 2), undefined, { ref: false })
    }
  }

  async #attempt(
    method: Method,
    name: string,
    {
      headers = {},
      query = {},
      body,
      maxBytes = MAX_ERROR_BYTES,
      signal,
    }: S3Request & { readonly signal: AbortSignal },
  ): Promise<Answer> {
    const { endpoint, bucket, region } = this.#place
    const path = name === '' ? bucket : `${bucket}/${name}`
    const url = new URL(`${endpoint}/${path.split('/').map(encodeSegment).join('/')}`)
    url.search = canonicalQuery(query)
    const signed = signatureHeaders(
      {
        method,
        host: url.host,
        path: url.pathname,
        query: url.search.slice(1),
        headers,
        body: body ?? NO_BODY,
      },
      this.#key,
      { service: 's3', region },
      new Date(),
    )
    const response = await request(url, {
      method,
      dispatcher: this.#agent,
      signal,
      headers: [...Object.entries(headers).flat(), ...signed],
      ...(body && { body }),
    })
    // Destroying the body below emits an error, which would end the process without a listener.
    response.body.on('error', () => {})
    try {
      return {
        status: response.statusCode,
        body: await collected(response.body, response.statusCode, maxBytes),
        objectBytes: objectBytesOf(response),
      }
    } finally {
      response.body.destroy()
    }
  }
}

const NO_BODY = Buffer.alloc(0)

/** A failure that would recur, so that the request is not repeated. */
class Refused extends Error {}

/**
 * Reads a response body. The body of an error is cut off at the limit; any other body that is too long is
 * refused.
 */
async function collected(body: AsyncIterable<Buffer>, status: number, maxBytes: number): Promise<Buffer> {
  const isError = status >= 300
  const limit = isError ? MAX_ERROR_BYTES : maxBytes
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    length += chunk.length
    if (length > limit && isError) break
    if (length > limit) throw new Refused(`the bucket responded ${status} with more than ${limit} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function objectBytesOf({ headers }: Dispatcher.ResponseData): number | undefined {
  const [bytes] = /(?<=\/)\d+$/.exec(String(headers['content-range'])) ?? []
  return bytes === undefined ? undefined : Number(bytes)
}

/** The code of an error response; undefined if it has none. */
export function errorCodeOf({ body }: Pick<Answer, 'body'>): string | undefined {
  return /<Code>([A-Za-z0-9.]{1,64})<\/Code>/.exec(body.toString('latin1'))?.[1]
}

function refusalOf(answer: Answer): Error {
  const code = errorCodeOf(answer)
  return new Error(`the bucket responded ${answer.status}${code === undefined ? '' : ` ${code}`}`)
}

/**
 * The code of a connection failure, such as ECONNREFUSED. The message is not used, because it may contain
 * addresses.
 */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
