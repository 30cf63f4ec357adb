/** A bucket on an S3-compatible server. */
export interface BucketLocation {
  readonly kind: 's3'
  readonly bucket: string
  /** Prefix of object names, without slashes around it; may be empty. */
  readonly prefix: string
  /** URL of the server; `/BUCKET/KEY` is appended to it. */
  readonly endpoint: string
  readonly region: string
}

export interface BucketCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}
