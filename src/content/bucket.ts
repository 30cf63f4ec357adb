import { randomBytes } from 'node:crypto'
import type { BucketCredentials, BucketLocation } from '../domain/bucket.ts'
import { errorCodeOf, S3Bucket } from '../upstreams/s3-bucket.ts'
import type { ContentEntry, ContentEntryHead } from './entries.ts'
import { DAY_MS, dayText } from './retention.ts'

/** Maximum bytes that are read of a list of 1,000 names. */
const MAX_LIST_BYTES = 4 * 1024 * 1024
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

/**
 * Stores encrypted content in objects of a bucket, many entries in one object. The bucket is not trusted: its
 * responses are read up to a limit, and only objects whose names have the gateway's own form are touched.
 */
export class Bucket {
  readonly #place: BucketLocation
  readonly #server: S3Bucket
  /** The beginning of the names of all objects of this installation. */
  readonly #folder: string

  /**
   * Sends nothing yet. `owner` names this installation; only objects below that name are ever removed.
   */
  constructor(place: BucketLocation, key: BucketCredentials, owner: string) {
    this.#place = place
    this.#folder = `${place.prefix === '' ? '' : `${place.prefix}/`}${owner}/`
    this.#server = new S3Bucket(place, key)
  }

  /**
   * Writes entries into one object for each day on which they are removed. Resolves to the same entries with
   * their place in the bucket.
   */
  async keep(entries: readonly ContentEntry[]): Promise<readonly ContentEntry[]> {
    const kept: ContentEntry[] = []
    for (const [dropDay, some] of Map.groupBy(entries, (entry) => entry.dropDay)) {
      const name = `${this.#folder}${dayText(dropDay)}/${nameNow()}`
      await this.#server.accepted('PUT', name, { body: Buffer.concat(some.map(({ sealed }) => sealed)) })
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
   * Reads the encrypted content of an entry; undefined if this bucket does not contain it, or not all of it. Rejects if
   * the bucket cannot be read.
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
    const answer = await this.#server.send('GET', name, { headers: range, maxBytes: length })
    const { status, body, objectBytes = Number.POSITIVE_INFINITY } = answer
    // Only what the bucket says of the object is certain, and not the page of a proxy: the data key of what does not exist
    // may be destroyed.
    if (status >= 400 && /^(?:NoSuchKey|InvalidRange)$/.test(errorCodeOf(answer) ?? '')) return undefined
    if ((status === 206 || status === 416) && objectBytes < at + length) return undefined
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
        await Promise.all(some.map((name) => this.#server.accepted('DELETE', name)))
        removed += some.length
      }
      if (list.next === undefined || list.next === next) break
      next = list.next
    }
    return removed
  }

  close(): Promise<void> {
    return this.#server.close()
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
    const { body } = await this.#server.accepted('GET', '', { query, maxBytes: MAX_LIST_BYTES })
    const text = body.toString()
    const keys = [...text.matchAll(/<Key>([^<]{1,1024})<\/Key>/g)].slice(0, PAGE_NAMES)
    const names = keys.map(([, name]) => unescaped(name ?? ''))
    const [, next] = /<NextContinuationToken>([^<]{1,2048})<\/NextContinuationToken>/.exec(text) ?? []
    return {
      names: names.filter((name) => name.length <= MAX_NAME_LENGTH && name.startsWith(this.#folder)),
      next: next === undefined ? undefined : unescaped(next),
    }
  }
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
