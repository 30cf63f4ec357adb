import { hash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AwsV4Signer } from 'aws4fetch'
import { Agent, request } from 'undici'
import type { BucketKey, BucketPlace } from '../domain/content-log.ts'
import { lookupBlockingMetadata } from '../upstreams/lookup-blocking-metadata.ts'
import type { ContentEntry, EntryHead } from './entries.ts'
import { DAY_MS, dayText } from './retention.ts'

/** Timeouts of a request with all its attempts. No call waits for it, but somebody may wait for a read. */
const TIMEOUT_MS = { GET: 15_000, PUT: 30_000, DELETE: 15_000 } as const
const CONNECT_MS = 5_000
/** Attempts at a request whose failure may pass, and the pause before the second. */
const ATTEMPTS = 3
const PAUSE_MS = 200
/** Maximum bytes that are read of a list of 1,000 names, and of an error. */
const MAX_LIST_BYTES = 4 * 1024 * 1024
const MAX_ERROR_BYTES = 64 * 1024
const MAX_NAME_LENGTH = 1_024
/** Requests under way at a time when many objects are removed. */
const PARALLEL = 8
/** Pages of one listing: a million objects. */
const MAX_PAGES = 1_000
/** Age from which an object that nothing refers to is no longer about to be referred to. */
const UNUSED_MS = 3_600_000
/** Bytes that encryption adds to an entry. */
const SEAL_BYTES = 28

/** An object's name behind prefix and owner: the day on which it is removed, and the time at which it was made. */
const NAME = /^(\d{4}-\d\d-\d\d)\/([0-9a-f]{12})-[0-9a-f]{24}$/

type Method = keyof typeof TIMEOUT_MS

interface Answer {
  readonly status: number
  readonly body: Buffer
}

/**
 * Encrypted content in objects of a bucket, many entries in one. What a bucket says is not trusted: it is read up
 * to a limit, and only names that have the form of ours are acted on.
 */
export class Bucket {
  readonly #place: BucketPlace
  readonly #key: BucketKey
  readonly #signer: typeof AwsV4Signer
  readonly #agent = new Agent({
    allowH2: false,
    maxHeaderSize: 16_384,
    headersTimeout: TIMEOUT_MS.PUT,
    bodyTimeout: TIMEOUT_MS.PUT,
    connect: { timeout: CONNECT_MS, lookup: lookupBlockingMetadata },
  })
  /** Keys for signing, which are made once a day. */
  readonly #cache = new Map<string, ArrayBuffer>()

  /** What every name begins with. */
  readonly #folder: string

  private constructor(place: BucketPlace, key: BucketKey, owner: string, signer: typeof AwsV4Signer) {
    this.#place = place
    this.#folder = `${place.prefix === '' ? '' : `${place.prefix}/`}${owner}/`
    this.#key = key
    this.#signer = signer
  }

  /** Opens a bucket; nothing is sent yet. `owner` names the installation: it removes what is below this name alone. */
  static async open(place: BucketPlace, key: BucketKey, owner: string): Promise<Bucket> {
    // Loaded only where content is kept in a bucket.
    const { AwsV4Signer: signer } = await import('aws4fetch')
    return new Bucket(place, key, owner, signer)
  }

  /** Keeps entries in an object for each day on which they are removed. Resolves to the entries, which now say where. */
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

  /** Reads the encrypted content of an entry; undefined if it is not in this bucket. Rejects if that is not known. */
  async sealedOf({
    object,
    objectAt: at,
    objectBytes: length,
    bytes,
  }: EntryHead): Promise<Buffer | undefined> {
    const name = this.#nameOf(object)
    if (name === undefined || length <= 0 || length > bytes + SEAL_BYTES) return undefined
    const range = { range: `bytes=${at}-${at + length - 1}` }
    const { status, body } = await this.#send('GET', name, { headers: range, maxBytes: length })
    if (status === 404) return undefined
    // A server that ignores the range sends the object from its start.
    if ((status !== 206 && (status !== 200 || at > 0)) || body.length !== length)
      throw new Error(`the bucket responded ${status} with ${body.length} of ${length} bytes`)
    return body
  }

  /**
   * Removes the objects whose day has come, and those that no entry refers to. `objectsOf` are the objects of the
   * entries of a day. Resolves to the number of objects that are gone.
   */
  async sweep(
    today: number,
    nowMs: number,
    objectsOf: (dropDay: number) => Promise<ReadonlySet<string>>,
  ): Promise<number> {
    const used = new Map<number, ReadonlySet<string>>()
    let removed = 0
    let next: string | undefined
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const list = await this.#list(next)
      const unused: string[] = []
      for (const name of list.names) {
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
      for (let at = 0; at < unused.length; at += PARALLEL)
        await Promise.all(unused.slice(at, at + PARALLEL).map((name) => this.#accepted('DELETE', name)))
      removed += unused.length
      if (list.next === undefined || list.next === next) break
      next = list.next
    }
    return removed
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }

  /** The name of an object that is ours and in this bucket. */
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
    const names = [...text.matchAll(/<Key>([^<]{1,1024})<\/Key>/g)].map(([, name]) => unescaped(name ?? ''))
    const [, next] = /<NextContinuationToken>([^<]{1,2048})<\/NextContinuationToken>/.exec(text) ?? []
    return {
      names: names.filter((name) => name.length <= MAX_NAME_LENGTH && name.startsWith(this.#folder)),
      next: next === undefined ? undefined : unescaped(next),
    }
  }

  /** Sends a request that must succeed. An object that is to be removed may be gone. */
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

  /** Sends a request, again if its failure may pass. Rejects with a reason that contains nothing of the answer's texts. */
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
    const url = new URL(`${endpoint}/${bucket}${name === '' ? '' : `/${name}`}`)
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value)
    const signed = await new this.#signer({
      method,
      url: url.href,
      headers: { ...headers, 'x-amz-content-sha256': hash('sha256', body ?? '') },
      ...this.#key,
      service: 's3',
      region,
      cache: this.#cache,
    }).sign()
    const response = await request(signed.url, {
      method,
      dispatcher: this.#agent,
      signal,
      headers: { ...headers, ...Object.fromEntries(signed.headers) },
      ...(body && { body }),
    })
    // Destroying the body below emits an error that can be ignored.
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

/** A failure that a further attempt would repeat. */
class Refused extends Error {}

/** An error's body is cut off; any other must fit. */
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

/** The code of a failed connection, such as ECONNREFUSED; its text may name addresses. */
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
