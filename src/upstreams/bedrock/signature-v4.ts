import { createHmac, hash } from 'node:crypto'
import type { AwsKey } from '../../domain/provider-keys.ts'

// AWS signatures are implemented here in 80 lines, because aws4fetch signs asynchronously and
// `@smithy/signature-v4` has several megabytes of dependencies. Tests compare the result with aws4fetch and
// with published examples.

/** The parts of a request that its signature covers. */
export interface SignableRequest {
  readonly method: string
  readonly host: string
  /** The path as it is sent: percent-encoded, without the query. */
  readonly path: string
  readonly contentType: string
  readonly body: Buffer
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

/** The service and region for which a signature is valid. */
export interface SigningScope {
  readonly service: string
  readonly region: string
}

/**
 * The headers that sign a request with AWS Signature Version 4: date, session token if there is one, and
 * `authorization`. They are valid from five minutes before to five minutes after `now`, so each attempt needs
 * new ones.
 */
export function signatureHeaders(
  request: SignableRequest,
  key: AwsKey,
  { service, region }: SigningScope,
  now: Date,
): string[] {
  const time = now.toISOString().replaceAll(/[-:]|\.\d{3}/g, '')
  const date = time.slice(0, 8)
  const signed: [string, string][] = [
    ['content-type', request.contentType],
    ['host', request.host],
    ['x-amz-date', time],
    ...(key.sessionToken === undefined
      ? []
      : [['x-amz-security-token', key.sessionToken] satisfies [string, string]]),
  ]
  const names = signed.map(([name]) => name).join(';')
  const canonical = [
    request.method,
    canonicalPath(request.path),
    '',
    ...signed.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    hash('sha256', request.body),
  ].join('\n')
  const scope = `${date}/${region}/${service}/aws4_request`
  const toSign = [ALGORITHM, time, scope, hash('sha256', canonical)].join('\n')
  const signature = hmac(signingKey(key.secretAccessKey, date, region, service), toSign).toString('hex')
  const headers = ['x-amz-date', time]
  if (key.sessionToken !== undefined) headers.push('x-amz-security-token', key.sessionToken)
  const credential = `Credential=${key.accessKeyId}/${scope}`
  headers.push('authorization', `${ALGORITHM} ${credential}, SignedHeaders=${names}, Signature=${signature}`)
  return headers
}

// For signatures of all services except S3, each segment of the path is percent-encoded once more.
function canonicalPath(path: string): string {
  return path.split('/').map(encodeSegment).join('/')
}

/** Percent-encodes all characters except the unreserved ones of RFC 3986. */
export function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function signingKey(secret: string, date: string, region: string, service: string): Buffer {
  return [date, region, service, 'aws4_request'].reduce(hmac, Buffer.from(`AWS4${secret}`))
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
