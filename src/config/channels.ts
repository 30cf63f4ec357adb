import { z } from 'zod'
import { ALLOWABLE_FIELDS } from '../domain/allowed-field.ts'
import type { Channel } from '../domain/channel.ts'
import { PROTOCOL_NAMES } from '../domain/protocols.ts'
import { parseProxy } from '../upstreams/http1/proxy.ts'
import { readBaseUrl } from './base-url.ts'
import {
  credential,
  dictionary,
  duration,
  type Field,
  flag,
  integer,
  list,
  name,
  oneOf,
  oneOrList,
  Refusal,
  scalar,
  secret,
  section,
  text,
} from './fields.ts'
import { PROVIDER_FIELDS, providerIssues, providerOf } from './channel-provider.ts'
import { EDIT_FIELDS, editsOf } from './channel-edits.ts'
import { DEFAULT_GROUP, groupName } from './groups.ts'
import { rateLimit } from './rate-limits.ts'
import { child, type YamlNode, YamlScalar } from './yaml-node.ts'

/** The timeouts of a channel that declares none. */
export const DEFAULT_TIMEOUTS: Channel['timeouts'] = {
  connect: 5_000,
  first_byte: 120_000,
  idle: 120_000,
  total: 900_000,
}

/** Headers of the connection or of the sent body, which an operator may not set. */
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

// Its form is checked with the provider.
const serviceAccount = secret("the JSON of a service account's key, or file: and its path", (given) =>
  given.trim().startsWith('{') ? given : undefined,
)

const model = name('the name of a model')

const baseUrl = text('an http:// or https:// URL', (given) => {
  const read = readBaseUrl(given)
  return 'url' in read ? read.url : new Refusal(read.expected)
})

// May hold a password, so that no message repeats it.
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

const timeouts = section({
  connect: duration.default(DEFAULT_TIMEOUTS.connect),
  first_byte: duration.default(DEFAULT_TIMEOUTS.first_byte),
  idle: duration.default(DEFAULT_TIMEOUTS.idle),
  total: duration.default(DEFAULT_TIMEOUTS.total),
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

/** A channel of providers whose addresses and keys are read so. */
function channelWith(
  groups: ReadonlySet<string>,
  address: Field<string> | z.ZodOptional<Field<string>>,
  key: Field<string>,
): Field<Channel> {
  return section({
    ...PROVIDER_FIELDS,
    ...EDIT_FIELDS,
    name: name('a name for the channel'),
    protocol: protocols,
    proxy: proxy.optional(),
    base_url: address,
    probe: duration.optional(),
    status_mapping: statusMapping,
    keys: list(key, 'a list of keys'),
    models: list(model, 'a list of at least one model', 1),
    groups: list(groupName(groups), 'a list of at least one group', 1).default([DEFAULT_GROUP]),
    priority: integer(-1_000_000, 1_000_000).default(0),
    weight: weight.default(1),
    model_mapping: dictionary(model, 'a mapping from asked-for to upstream model names'),
    allow: list(oneOf(ALLOWABLE_FIELDS), `a list out of ${ALLOWABLE_FIELDS.join(', ')}`),
    disable_store: flag.default(false),
    pass_through: flag.default(false),
    headers,
    rate_limit: rateLimit,
    on_client_gone: oneOf(['cancel', 'drain']).default('cancel'),
    timeouts,
  }).transform((given, ctx): Channel => {
    for (const { path, message } of providerIssues(given))
      ctx.issues.push({ code: 'custom', path: [...path], message, input: undefined })
    return {
      ...providerOf(given),
      ...editsOf(given),
      name: given.name,
      protocols: given.protocol,
      ...(given.proxy !== undefined && { proxy: given.proxy }),
      ...(given.probe !== undefined && { probeMs: given.probe }),
      ...(given.status_mapping.size > 0 && { statusMapping: given.status_mapping }),
      keys: given.keys,
      models: given.models,
      groups: given.groups,
      priority: given.priority,
      weight: given.weight,
      modelMapping: given.model_mapping,
      allow: new Set(given.allow),
      disableStore: given.disable_store,
      passThrough: given.pass_through,
      headers: given.headers,
      rateLimit: given.rate_limit,
      onClientGone: given.on_client_gone,
      timeouts: given.timeouts,
    }
  })
}
