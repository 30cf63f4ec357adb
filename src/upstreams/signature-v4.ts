import { createHmac, hash } from 'node:crypto'
import type { AwsKey } from '../domain/provider-keys.ts'

// AWS signatures are implemented here in 100 lines, because libraries sign asynchronously, and
// `@smithy/signature-v4` has several megabytes of dependencies. Tests compare the result with AWS's published
// examples.

/** The parts of a request that its signature covers. */
export interface SignableRequest {
  readonly method: string
  readonly host: string
  /** The path as it is sent: percent-encoded, without the query. For S3, each segment by {@link encodeSegment}. */
  readonly path: string
  /** The query as it is sent, from {@link canonicalQuery}; empty if there is none. */
  readonly query?: string
  /** Further headers that are signed, by their names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Buffer
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

/** The service and region for which a signature is valid. */
export interface SigningScope {
  readonly service: string
  readonly region: string
}

/**
 * The headers that sign a request with AWS Signature Version 4: date, session token if there is one, for S3 the
 * hash of the body, and `authorization`. They are valid from five minutes before to five minutes after `now`, so
 * each attempt needs new ones.
 */
export function signatureHeaders(
  request: SignableRequest,
  key: AwsKey,
  { service, region }: SigningScope,
  now: Date,
): string[] {
  const time = now.toISOString().replaceAll(/[-:]|\.\d{3}/g, '')
  const date = time.slice(0, 8)
  const isS3 = service === 's3'
  const bodyHash = hash('sha256', request.body)
  const added = {
    'x-amz-date': time,
    ...(isS3 && { 'x-amz-content-sha256': bodyHash }),
    ...(key.sessionToken !== undefined && { 'x-amz-security-token': key.sessionToken }),
  }
  const signed = Object.entries({ ...request.headers, host: request.host, ...added }).toSorted(compareNames)
  const names = signed.map(([name]) => name).join(';')
  const canonical = [
    request.method,
    // Services other than S3 take the path as it is sent, and percent-encode each of its segments once more.
    isS3 ? request.path : request.path.split('/').map(encodeSegment).join('/'),
    request.query ?? '',
    ...signed.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    bodyHash,
  ].join('\n')
  const scope = `${date}/${region}/${service}/aws4_request`
  const toSign = [ALGORITHM, time, scope, hash('sha256', canonical)].join('\n')
  const signature = hmac(signingKey(key.secretAccessKey, date, region, service), toSign).toString('hex')
  const credential = `Credential=${key.accessKeyId}/${scope}`
  const authorization = `${ALGORITHM} ${credential}, SignedHeaders=${names}, Signature=${signature}`
  return [...Object.entries(added).flat(), 'authorization', authorization]
}

/** A query in the form that is signed: parameters in the order of their names, percent-encoded. */
export function canonicalQuery(parameters: Readonly<Record<string, string>>): string {
  return Object.entries(parameters)
    .map(([name, value]): [string, string] => [encodeSegment(name), encodeSegment(value)])
    .toSorted(compareNames)
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

/** Percent-encodes all characters except the unreserved ones of RFC 3986. */
export function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function compareNames([one]: readonly [string, string], [other]: readonly [string, string]): number {
  return one < other ? -1 : Number(one > other)
}

function signingKey(secret: string, date: string, region: string, service: string): Buffer {
  return [date, region, service, 'aws4_request'].reduce(hmac, Buffer.from(`AWS4${secret}`))
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
