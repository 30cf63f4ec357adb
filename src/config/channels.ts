import { z } from 'zod'
import { ALLOWABLE_FIELDS, type AllowedField } from '@sluice/wire/upstream-settings'
import { type Channel, CHANNEL_SETTINGS } from '../domain/records/channel.ts'
import { PROTOCOL_NAMES } from '@sluice/wire/protocols'
import { parseProxy } from '../upstreams/parse-proxy.ts'
import { readBaseUrl } from './base-url.ts'
import {
  credential,
  dictionary,
  duration,
  type Field,
  integer,
  list,
  oneOf,
  oneOrList,
  Refusal,
  scalar,
  secret,
  section,
  text,
} from './fields.ts'
import { addressOf, providerIssues } from './channel-provider.ts'
import { override } from './channel-edits.ts'
import { declaredShape } from './record-fields.ts'
import { DEFAULT_GROUP, groupName } from './groups.ts'
import { rateLimit } from './rate-limits.ts'
import { child, type YamlNode, YamlScalar } from './yaml-node.ts'

/** Headers of the connection or of the body, which an operator may not set. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const plainKey = credential('a key: printable characters without spaces')

// The form of the key is checked together with the provider.
const serviceAccount = secret("the JSON of a service account's key, or file: and its path", (given) =>
  given.trim().startsWith('{') ? given : undefined,
)

const baseUrl = text('an http:// or https:// URL', (given) => {
  const read = readBaseUrl(given)
  return 'url' in read ? read.url : new Refusal(read.expected)
})

// May contain a password, so messages do not repeat it.
const proxy = secret('http://USER:PASSWORD@HOST:PORT, or the same with socks5://', (given) =>
  parseProxy(given) ? given : undefined,
)

const protocols = oneOrList(oneOf(PROTOCOL_NAMES), 'a list of at least one protocol')

const weight = scalar('a number from 0 to 1000000', ({ value }) => {
  const number = value === '' || typeof value === 'boolean' ? Number.NaN : Number(value)
  return number >= 0 && number <= 1_000_000 ? number : undefined
})

const headerValue = secret('a header value: printable characters, no line breaks', (given) =>
  /^[\t -~\u{80}-\u{ff}]*$/u.test(given) ? given.trim() : undefined,
)

const headers: Field<ReadonlyMap<string, string>> = dictionary(headerValue, 'a mapping from header names')
  .superRefine((given, ctx) => {
    const seen = new Set<string>()
    for (const key of given.keys()) {
      const lower = key.toLowerCase()
      const refuse = (message: string): void => ctx.addIssue({ code: 'custom', path: [key], message })
      if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(key)) refuse('expected the name of a header')
      else if (RESERVED_HEADERS.has(lower)) refuse('expected a header that the gateway does not set itself')
      else if (seen.has(lower))
        refuse('expected this header once (names are the same in upper and lower case)')
      seen.add(lower)
    }
  })
  .transform((given) => new Map([...given].map(([key, value]) => [key.toLowerCase(), value])))

const allow = list(oneOf(ALLOWABLE_FIELDS), `a list out of ${ALLOWABLE_FIELDS.join(', ')}`).transform(
  (given): ReadonlySet<AllowedField> => new Set(given),
)

const status = integer(400, 599)

const statusMapping: Field<ReadonlyMap<number, number>> = dictionary(
  status,
  'a mapping from statuses to statuses',
)
  .superRefine((given, ctx) => {
    for (const key of given.keys())
      if (!/^[45]\d\d$/.test(key))
        ctx.addIssue({ code: 'custom', path: [key], message: 'expected a status from 400 to 599' })
  })
  .transform((given) => new Map([...given].map(([key, value]) => [Number(key), value])))

const { default: usual } = CHANNEL_SETTINGS.fields.timeouts

const timeouts = section({
  connect: duration.default(usual.connect),
  first_byte: duration.default(usual.first_byte),
  idle: duration.default(usual.idle),
  total: duration.default(usual.total),
})

/** `docs/configuration.md: Channels`. */
export function channel(groups: ReadonlySet<string>): Field<Channel> {
  const addressed = channelWith(groups, baseUrl, plainKey)
  const bedrock = channelWith(groups, baseUrl.optional(), plainKey)
  const vertex = channelWith(groups, baseUrl.optional(), serviceAccount)
  return z.unknown().transform((given, ctx): Channel => {
    const provider = child(given as YamlNode, 'provider')
    const named = provider instanceof YamlScalar ? provider.value : undefined
    const read = (named === 'vertex' ? vertex : named === 'bedrock' ? bedrock : addressed).safeParse(given)
    if (read.success) return read.data
    for (const issue of read.error.issues) ctx.issues.push({ ...issue, input: undefined })
    return z.NEVER
  })
}

/** A channel whose provider needs these readers for its address and its keys. */
function channelWith(
  groups: ReadonlySet<string>,
  address: Field<string> | z.ZodOptional<Field<string>>,
  key: Field<string>,
): Field<Channel> {
  const shape = declaredShape(CHANNEL_SETTINGS.fields, {
    protocol: protocols,
    base_url: address as Field<string>,
    proxy,
    keys: list(key, 'a list of keys'),
    groups: list(groupName(groups), 'a list of at least one group', 1).default([DEFAULT_GROUP]),
    weight,
    override,
    allow,
    headers,
    status_mapping: statusMapping,
    rate_limit: rateLimit,
    timeouts,
  })
  return section(shape).transform((given, ctx): Channel => {
    for (const { path, message } of providerIssues(given))
      ctx.issues.push({ code: 'custom', path: [...path], message, input: undefined })
    return { ...given, base_url: addressOf(given) }
  })
}
