import type { BucketCredentials, BucketLocation } from '../domain/bucket.ts'
import type { ObjectPlace, ObjectRange } from '../store/object-place.ts'
import { errorCodeOf, S3Bucket } from './s3-bucket.ts'

/** Keeps objects in a bucket on an S3-compatible server. */
export class ObjectBucket implements ObjectPlace {
  readonly #server: S3Bucket
  readonly #folder: string

  /** Sends nothing yet. */
  constructor(place: BucketLocation, key: BucketCredentials) {
    this.#server = new S3Bucket(place, key)
    this.#folder = place.prefix === '' ? '' : `${place.prefix}/`
  }

  /** A bucket that is missing says so. */
  begin(): Promise<void> {
    return Promise.resolve()
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
    const answer = await this.#server.send('GET', this.#folder + name, { headers, maxBytes: length })
    const { status, body } = answer
    // 416: the object ends before. Other causes of a 404, such as a missing bucket, say nothing of the object.
    if (status === 416 || (status === 404 && errorCodeOf(answer) === 'NoSuchKey')) return undefined
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
