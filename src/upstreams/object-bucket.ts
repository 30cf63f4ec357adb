import type { BucketCredentials, BucketLocation } from '../domain/bucket.ts'
import type { ObjectPlace, ObjectRange } from '../store/object-place.ts'
import { S3Bucket } from './s3-bucket.ts'

/** Keeps objects in a bucket on an S3-compatible server. */
export class ObjectBucket implements ObjectPlace {
  readonly #server: S3Bucket
  readonly #folder: string

  /** Sends nothing yet. */
  constructor(place: BucketLocation, key: BucketCredentials) {
    this.#server = new S3Bucket(place, key)
    this.#folder = place.prefix === '' ? '' : `${place.prefix}/`
  }

  /** A bucket states no size. */
  hasRoom(): Promise<boolean> {
    return Promise.resolve(true)
  }

  async put(name: string, body: Buffer): Promise<void> {
    await this.#server.accepted('PUT', this.#folder + name, { body })
  }

  async get(name: string, { at, length }: ObjectRange): Promise<Buffer | undefined> {
    const headers = { range: `bytes=${at}-${at + length - 1}` }
    const { status, body } = await this.#server.send('GET', this.#folder + name, {
      headers,
      maxBytes: length,
    })
    // 416: the object ends before.
    if (status === 404 || status === 416) return undefined
    // A server that ignores `range` sends the whole object.
    if (status !== 206 && (status !== 200 || at > 0)) throw new Error(`the bucket responded ${status}`)
    return body
  }

  async remove(name: string): Promise<void> {
    await this.#server.accepted('DELETE', this.#folder + name)
  }

  close(): Promise<void> {
    return this.#server.close()
  }
}
