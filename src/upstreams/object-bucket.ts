import type { BucketCredentials, BucketLocation } from '../domain/bucket.ts'
import type { ObjectPlace } from '../store/object-place.ts'
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

  async get(name: string, maxBytes: number): Promise<Buffer | undefined> {
    const { status, body } = await this.#server.send('GET', this.#folder + name, { maxBytes })
    if (status === 404) return undefined
    if (status !== 200) throw new Error(`the bucket responded ${status}`)
    return body
  }

  async remove(name: string): Promise<void> {
    await this.#server.accepted('DELETE', this.#folder + name)
  }

  close(): Promise<void> {
    return this.#server.close()
  }
}
