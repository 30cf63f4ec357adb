import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import type { BucketCredentials, BucketLocation } from '../domain/content-log.ts'
import { lookupBlockingMetadata } from '../upstreams/lookup-blocking-metadata.ts'
import { canonicalQuery, encodeSegment, signatureHeaders } from '../upstreams/signature-v4.ts'
import type { ContentEntry, ContentEntryHead } from './entries.ts'
import { DAY_MS, dayText } from './retention.ts'

/**
 * Timeouts in milliseconds of a request including its retries. No call waits for it, but a person may wait
 * for a read.
 */
const TIMEOUT_MS = { GET: 15_000, PUT: 30_000, DELETE: 15_000 } as const
const CONNECT_MS = 5_000
/**
 * Maximum number of attempts at a request that fails temporarily, and the base of the pause between them in
 * milliseconds.
 */
const ATTEMPTS = 3
const PAUSE_MS = 200
/** Maximum bytes that are read of a list of 1,000 names, and of an error response. */
const MAX_LIST_BYTES = 4 * 1024 * 1024
const MAX_ERROR_BYTES = 64 * 1024
const MAX_NAME_LENGTH = 1_024
/** Number of objects that are removed at the same time. */
const PARALLEL = 8
/** Maximum number of names on a page of a listing, and of pages of one listing: a million objects. */
const PAGE_NAMES = 1_000
const MAX_PAGES = 1_000
/**
 * Milliseconds after which a removal of unused objects ends; the next one, an hour later, goes on with it. The removal of
 * other expired data waits for it, and a bucket may be slow or list names without end.
 */
const SWEEP_MS = 600_000
/**
 * Age in milliseconds at which an unreferenced object may be removed. The database refers to an object only a
 * moment after it was written, so younger ones are kept.
 */
const UNUSED_MS = 3_600_000
/** Bytes that encryption adds to an entry: nonce and authentication tag. */
const SEAL_BYTES = 28

/**
 * Matches the last part of an object's name: the day on which the object is removed, and the time at which it
 * was made, in Unix milliseconds as hexadecimal digits.
 */
const NAME = /^(\d{4}-\d\d-\d\d)\/([0-9a-f]{12})-[0-9a-f]{24}$/

type Method = keyof typeof TIMEOUT_MS

interface Answer {
  readonly status: number
  readonly body: Buffer
}

/**
 * Stores encrypted content in objects of a bucket, many entries in one object. The bucket is not trusted: its
 * responses are read up to a limit, and only objects whose names have the gateway's own form are touched.
 */
export class Bucket {
  readonly #place: BucketLocation
  readonly #key: BucketCredentials
  readonly #agent = new Agent({
    allowH2: false,
    maxHeaderSize: 16_384,
    headersTimeout: TIMEOUT_MS.PUT,
    bodyTimeout: TIMEOUT_MS.PUT,
    connect: { timeout: CONNECT_MS, lookup: lookupBlockingMetadata },
  })
  /** The beginning of the names of all objects of this installation. */
  readonly #folder: string

  /**
   * Sends nothing yet. `owner` names this installation; only objects below that name are ever removed.
   */
  constructor(place: BucketLocation, key: BucketCredentials, owner: string) {
    this.#place = place
    this.#folder = `${place.prefix === '' ? '' : `${place.prefix}/`}${owner}/`
    this.#key = key
  }

  /**
   * Writes entries into one object for each day on which they are removed. Resolves to the same entries with
   * their place in the bucket.
   */
  async keep(entries: readonly ContentEntry[]): Promise<readonly ContentEntry[]> {
    const kept: ContentEntry[] = []
    for (const [dropDay, some] of Map.groupBy(entries, (entry) => entry.dropDay)) {
      const name = `${this.#folder}${dayText(dropDay)}/${nameNow()}`
      await this.#accepted('PUT', name, Buffer.concat(some.map(({ sealed }) => sealed)))
      let at = 0
      for (const entry of some) {
        const object = `s3://${this.#place.bucket}/${name}`
        kept.push({
          ...entry,
          object,
          objectAt: at,
          objectBytes: entry.sealed.length,
          sealed: Buffer.alloc(0),
        })
        at += entry.sealed.length
      }
    }
    return kept
  }

  /**
   * Reads the encrypted content of an entry; undefined if this bucket does not contain it. Rejects if the
   * bucket cannot be read.
   */
  async sealedOf({
    object,
    objectAt: at,
    objectBytes: length,
    bytes,
  }: ContentEntryHead): Promise<Buffer | undefined> {
    const name = this.#nameOf(object)
    if (name === undefined || length <= 0 || length > bytes + SEAL_BYTES) return undefined
    const range = { range: `bytes=${at}-${at + length - 1}` }
    const { status, body } = await this.#send('GET', name, { headers: range, maxBytes: length })
    if (status === 404) return undefined
    // A server that ignores `range` sends the whole object, which is right only for an entry at its start.
    if ((status !== 206 && (status !== 200 || at > 0)) || body.length !== length)
      throw new Error(`the bucket responded ${status} with ${body.length} of ${length} bytes`)
    return body
  }

  /**
   * Removes objects whose day of removal has come, and objects that no entry refers to. `objectsOf` returns
   * the objects of the entries that are removed on a day. Resolves to the number of removed objects, after
   * `sweepMs` at the latest, apart from the requests under way.
   */
  async sweep(
    today: number,
    nowMs: number,
    objectsOf: (dropDay: number) => Promise<ReadonlySet<string>>,
    sweepMs = SWEEP_MS,
  ): Promise<number> {
    const endMs = performance.now() + sweepMs
    const isOver = (): boolean => performance.now() >= endMs
    const used = new Map<number, ReadonlySet<string>>()
    let removed = 0
    let next: string | undefined
    for (let page = 0; page < MAX_PAGES && !isOver(); page += 1) {
      const list = await this.#list(next)
      const unused: string[] = []
      for (const name of list.names) {
        if (isOver()) break
        const [, date, made] = NAME.exec(name.slice(this.#folder.length)) ?? []
        const day = date === undefined ? Number.NaN : Date.parse(date) / DAY_MS
        if (!Number.isInteger(day)) continue
        if (day > today) {
          if (Number.parseInt(made ?? '', 16) > nowMs - UNUSED_MS) continue
          if (!used.has(day)) used.set(day, await objectsOf(day))
          if (used.get(day)?.has(`s3://${this.#place.bucket}/${name}`)) continue
        }
        unused.push(name)
      }
      for (let at = 0; at < unused.length && !isOver(); at += PARALLEL) {
        const some = unused.slice(at, at + PARALLEL)
        await Promise.all(some.map((name) => this.#accepted('DELETE', name)))
        removed += some.length
      }
      if (list.next === undefined || list.next === next) break
      next = list.next
    }
    return removed
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }

  /** The name of an object, if it is in this bucket and has the gateway's own form; otherwise undefined. */
  #nameOf(object: string): string | undefined {
    const start = `s3://${this.#place.bucket}/`
    const name = object.startsWith(start) ? object.slice(start.length) : ''
    return /^(?:[\w.-]+\/)*$/.test(name.slice(0, -48)) && NAME.test(name.slice(-48)) ? name : undefined
  }

  async #list(
    after: string | undefined,
  ): Promise<{ readonly names: string[]; readonly next: string | undefined }> {
    const query = {
      'list-type': '2',
      prefix: this.#folder,
      ...(after !== undefined && { 'continuation-token': after }),
    }
    const { body } = await this.#accepted('GET', '', undefined, { query, maxBytes: MAX_LIST_BYTES })
    const text = body.toString()
    const keys = [...text.matchAll(/<Key>([^<]{1,1024})<\/Key>/g)].slice(0, PAGE_NAMES)
    const names = keys.map(([, name]) => unescaped(name ?? ''))
    const [, next] = /<NextContinuationToken>([^<]{1,2048})<\/NextContinuationToken>/.exec(text) ?? []
    return {
      names: names.filter((name) => name.length <= MAX_NAME_LENGTH && name.startsWith(this.#folder)),
      next: next === undefined ? undefined : unescaped(next),
    }
  }

  /**
   * Sends a request and rejects unless it succeeds. Removing an object that no longer exists counts as
   * success.
   */
  async #accepted(
    method: Method,
    name: string,
    body?: Buffer,
    options: { readonly query?: Readonly<Record<string, string>>; readonly maxBytes?: number } = {},
  ): Promise<Answer> {
    const answer = await this.#send(method, name, { body, maxBytes: MAX_ERROR_BYTES, ...options })
    if (answer.status >= 200 && answer.status < 300) return answer
    if (method === 'DELETE' && answer.status === 404) return answer
    throw refusalOf(answer)
  }

  /**
   * Sends a request, and repeats it after a temporary failure. The error never contains text from the
   * response body, except for a short error code.
   */
  async #send(
    method: Method,
    name: string,
    options: {
      readonly headers?: Readonly<Record<string, string>>
      readonly query?: Readonly<Record<string, string>>
      readonly body?: Buffer | undefined
      readonly maxBytes: number
    },
  ): Promise<Answer> {
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
      maxBytes,
      signal,
    }: {
      readonly signal: AbortSignal
      readonly headers?: Readonly<Record<string, string>>
      readonly query?: Readonly<Record<string, string>>
      readonly body?: Buffer | undefined
      readonly maxBytes: number
    },
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

function refusalOf({ status, body }: Answer): Error {
  const [, code] = /<Code>([A-Za-z0-9.]{1,64})<\/Code>/.exec(body.toString('latin1')) ?? []
  return new Error(`the bucket responded ${status}${code === undefined ? '' : ` ${code}`}`)
}

/**
 * The code of a connection failure, such as ECONNREFUSED. The message is not used, because it may contain
 * addresses.
 */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

function nameNow(): string {
  return `${Date.now().toString(16).padStart(12, '0')}-${randomBytes(12).toString('hex')}`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
}

function unescaped(text: string): string {
  return text.replaceAll(/&(?:amp|lt|gt|quot|apos);/g, (entity) => ENTITIES[entity] ?? entity)
}
