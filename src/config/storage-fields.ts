import { awsUrl } from '@sluice/wire/aws-domains'
import type { z } from 'zod'
import type { BucketLocation } from '../domain/bucket.ts'
import { parseDuration } from '../domain/units.ts'
import { readBaseUrl } from './base-url.ts'
import { type Field, InvalidValue, scalarSchema, textSchema } from './fields.ts'

const KEEP = 'a duration such as 24h or 30d'
const DAY_MS = 86_400_000
/** Maximum retention, ten years in milliseconds. */
const MAX_KEEP_MS = 3_650 * DAY_MS

/** A retention in milliseconds, rounded down to whole seconds. Only such fields accept days (`30d`). */
export const keepSchema: Field<number> = scalarSchema(KEEP, ({ value }) => {
  if (typeof value !== 'string') return undefined
  const [, days] = /^(\d{1,6}) ?d$/.exec(value.trim()) ?? []
  const given = days === undefined ? parseDuration(value) : Number(days) * DAY_MS
  if (given === undefined) return undefined
  return given >= 1000 && given <= MAX_KEEP_MS
    ? Math.floor(given / 1000) * 1000
    : new InvalidValue('a duration from 1s to 3650d')
})

/** A valid bucket name. `STEP` matches one part of an object prefix that needs no encoding in a URL. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const STEP = /^(?!\.\.?$)[\w.-]+$/
const MAX_PREFIX = 512

/** Reads `s3://BUCKET/PREFIX`; undefined if the value is something else. The server is still to be added. */
export function readBucket(value: unknown): BucketLocation | InvalidValue | undefined {
  if (typeof value !== 'string' || !value.startsWith('s3://')) return undefined
  const [bucket = '', ...steps] = value.slice('s3://'.length).replace(/\/$/, '').split('/')
  const prefix = steps.join('/')
  if (!BUCKET.test(bucket)) return new InvalidValue('s3:// and the name of a bucket')
  if (prefix.length > MAX_PREFIX || !steps.every((step) => STEP.test(step)))
    return new InvalidValue('a prefix of letters, digits, ".", "-", "_" and single slashes')
  return { kind: 's3', bucket, prefix, endpoint: '', region: '' }
}

const endpointSchema: Field<string> = textSchema('an http:// or https:// URL', (given) => {
  const read = readBaseUrl(given)
  return 'url' in read ? read.url : new InvalidValue(read.expected)
})

const DEFAULT_REGION = 'us-east-1'

const regionSchema: Field<string> = textSchema('the name of a region such as eu-central-1', (given) =>
  /^[a-z0-9-]{1,64}$/.test(given) ? given : undefined,
)

/** The fields that say which server has a bucket. */
export const serverOfBucket = { endpoint: endpointSchema.optional(), region: regionSchema.optional() }

interface ServerOfBucket {
  readonly endpoint?: string | undefined
  readonly region?: string | undefined
}

/** Refuses a server where what is kept is in no bucket. */
export function refuseServerWithoutBucket(
  given: ServerOfBucket & { readonly store: { readonly kind: string } },
  ctx: z.core.$RefinementCtx,
): void {
  for (const key of ['endpoint', 'region'] as const)
    if (given[key] !== undefined && given.store.kind !== 's3')
      ctx.addIssue({ code: 'custom', path: [key], message: 'expected only with store: s3://BUCKET/PREFIX' })
}

/** A bucket with its server. */
export function withServer(
  place: BucketLocation,
  { endpoint, region = DEFAULT_REGION }: ServerOfBucket,
): BucketLocation {
  return { ...place, endpoint: endpoint ?? awsUrl('s3', region), region }
}
