import type { ProtocolName } from '@sluice/wire/protocols'
import { FAST_MODE_BETA, STANDARD_TIER_NAME, tierName } from '@sluice/wire/service-tier'
import { vendorServiceOfChannel } from '../domain/price-data/index.ts'
import { OPENAI } from '../domain/price-data/openai.ts'
import type { Channel } from '../domain/records/channel.ts'
import { VERTEX_TIER_HEADER, VERTEX_TYPE_HEADER } from './tier-headers.ts'

/** Changes to a request after which it names a certain service tier. */
export interface TierEdits {
  /** Top-level JSON members to be set, with their values as JSON texts. */
  readonly set: ReadonlyMap<string, string>
  /** Top-level JSON members to be removed, because they could name another tier. */
  readonly remove: readonly string[]
  /** Headers to be added, names and values alternately. */
  readonly headers: readonly string[]
}

/** How requests of one protocol, or to one provider, name service tiers. */
interface Spelling {
  /** Top-level JSON members in which a request may name a tier. */
  readonly members: readonly string[]
  /**
   * For each tier, by the gateway's own name, the changes that make a request name it; `auto` leaves the
   * choice to the provider.
   */
  readonly tiers: Readonly<Record<string, Partial<TierEdits>>>
  /** Returns the changes for a tier that is not in `tiers`; absent if the provider has no further tiers. */
  readonly others?: (written: string) => Partial<TierEdits>
}

/** No changes, because the tier is the provider's default and need not be named. */
const UNNAMED: Partial<TierEdits> = {}

const member = (name: string, value: unknown): Partial<TierEdits> => ({
  set: new Map([[name, JSON.stringify(value)]]),
})
const header = (name: string, value: string): Partial<TierEdits> => ({ headers: [name, value] })

const ofOpenAi = (value: string): Partial<TierEdits> => member('service_tier', value)
const OPENAI_TIERS: Spelling = {
  members: ['service_tier'],
  tiers: {
    auto: ofOpenAi('auto'),
    [STANDARD_TIER_NAME]: ofOpenAi('default'),
    flex: ofOpenAi('flex'),
    fast: ofOpenAi('priority'),
    ultrafast: ofOpenAi('ultrafast'),
    reserved: ofOpenAi('scale'),
  },
}

/** Service tiers of servers that are compatible with OpenAI's; they may have further tiers of their own. */
const COMPATIBLE_TIERS: Spelling = {
  ...OPENAI_TIERS,
  others: (written) => ofOpenAi(written.toLowerCase()),
}

const MESSAGES_TIERS: Spelling = {
  members: ['service_tier', 'speed'],
  tiers: {
    auto: member('service_tier', 'auto'),
    [STANDARD_TIER_NAME]: member('service_tier', 'standard_only'),
    fast: { ...member('speed', 'fast'), ...header('anthropic-beta', FAST_MODE_BETA) },
  },
}

/** Service tiers that are named by the value of a single JSON member. */
const memberTiers = (name: string, spelled: Readonly<Record<string, unknown>>): Spelling['tiers'] => ({
  auto: UNNAMED,
  ...Object.fromEntries(Object.entries(spelled).map(([tier, value]) => [tier, member(name, value)])),
})

const GEMINI_TIERS: Spelling = {
  members: ['serviceTier', 'service_tier'],
  tiers: memberTiers('serviceTier', { [STANDARD_TIER_NAME]: 'standard', flex: 'flex', fast: 'priority' }),
}

const CONVERSE_TIERS: Spelling = {
  members: ['serviceTier'],
  tiers: memberTiers('serviceTier', {
    [STANDARD_TIER_NAME]: { type: 'default' },
    flex: { type: 'flex' },
    fast: { type: 'priority' },
    reserved: { type: 'reserved' },
  }),
}

/**
 * Service tiers of messages requests to Bedrock. The JSON member is moved to a header when the request is
 * adapted.
 */
const INVOKE_TIERS: Spelling = {
  members: ['service_tier', 'speed'],
  tiers: memberTiers('service_tier', {
    [STANDARD_TIER_NAME]: 'default',
    flex: 'flex',
    fast: 'priority',
    reserved: 'reserved',
  }),
}

const VERTEX_TIERS: Spelling = {
  members: ['service_tier', 'serviceTier', 'speed'],
  tiers: {
    auto: UNNAMED,
    [STANDARD_TIER_NAME]: UNNAMED,
    flex: header(VERTEX_TIER_HEADER, 'flex'),
    fast: header(VERTEX_TIER_HEADER, 'priority'),
    provisioned: header(VERTEX_TYPE_HEADER, 'dedicated'),
  },
}

/** How requests name service tiers, by protocol; undefined if requests of the protocol cannot name one. */
const BY_PROTOCOL: Readonly<Record<ProtocolName, Spelling | undefined>> = {
  chat: COMPATIBLE_TIERS,
  responses: COMPATIBLE_TIERS,
  messages: MESSAGES_TIERS,
  gemini: GEMINI_TIERS,
  converse: CONVERSE_TIERS,
  rerank: undefined,
}

type ByProtocol = Readonly<Partial<Record<ProtocolName, Spelling>>>

/**
 * How requests to a provider name service tiers, for protocols in which this differs from the protocol
 * itself.
 */
const BY_PROVIDER: Readonly<Record<Channel['provider'], ByProtocol>> = {
  generic: {},
  azure: {},
  bedrock: { messages: INVOKE_TIERS },
  vertex: { chat: VERTEX_TIERS, messages: VERTEX_TIERS, gemini: VERTEX_TIERS },
}

/** Matches paths whose requests may name a service tier. */
const TIERED =
  /^\/(?:chat\/completions|messages|responses|responses\/compact|converse|converse-stream)$|:(?:generateContent|streamGenerateContent)\b/

/** Whether requests with this path may name a service tier. The path is that of the protocol. */
export function mayNameTier(path: string): boolean {
  return TIERED.test(path)
}

type ChannelProvider = Pick<Channel, 'provider' | 'base_url'>

function spellingOf(channel: ChannelProvider, protocol: ProtocolName): Spelling | undefined {
  const spelling = BY_PROVIDER[channel.provider][protocol] ?? BY_PROTOCOL[protocol]
  return spelling === COMPATIBLE_TIERS && vendorServiceOfChannel(channel) === OPENAI ? OPENAI_TIERS : spelling
}

/** Whether requests to a channel may name service tiers that the protocol itself does not have. */
export function takesAnyTier({ provider }: Pick<Channel, 'provider'>, protocol: ProtocolName): boolean {
  return BY_PROVIDER[provider][protocol] === INVOKE_TIERS
}

/**
 * Service tiers that requests cannot name: batches have endpoints of their own, and purchased capacity has no
 * name.
 */
const NOT_REQUESTED: ReadonlySet<string> = new Set(['batch', 'provisioned'])

function editsFor(spelling: Spelling, written: string): Partial<TierEdits> | undefined {
  const tier = tierName(written)
  if (tier === undefined) return undefined
  if (Object.hasOwn(spelling.tiers, tier)) return spelling.tiers[tier]
  return NOT_REQUESTED.has(tier) ? undefined : spelling.others?.(written)
}

/**
 * Returns an error message if requests to a channel cannot name this service tier; undefined if they can. `found` is
 * what the message says was found.
 */
export function tierError(
  {
    provider,
    base_url = '',
    protocol,
  }: { readonly base_url?: string | undefined } & Pick<Channel, 'provider' | 'protocol'>,
  written: string,
  found: string,
): string | undefined {
  const spellings = protocol.flatMap((one) => spellingOf({ provider, base_url }, one) ?? [])
  if (spellings.length === 0) return 'requests of this protocol have no tier of service'
  const lacking = spellings.find((spelling) => editsFor(spelling, written) === undefined)
  if (!lacking) return undefined
  const names = Object.keys(lacking.tiers).map((name) => OTHER_SPELLINGS.get(name) ?? name)
  return `expected a tier of service that the provider has (${names.join(', ')}), found ${found}`
}

const OTHER_SPELLINGS: ReadonlyMap<string, string> = new Map([['fast', 'fast or priority']])

const NOTHING: TierEdits = { set: new Map(), remove: [], headers: [] }
const cache = new WeakMap<object, Map<ProtocolName, TierEdits>>()

/**
 * Returns the changes after which a request to a channel names the channel's own service tier; undefined if
 * the channel has none.
 */
export function channelTierEdits(
  channel: ChannelProvider & Pick<Channel, 'service_tier'>,
  protocol: ProtocolName,
): TierEdits | undefined {
  const { service_tier: written } = channel
  if (written === null) return undefined
  let known = cache.get(channel)
  if (!known) cache.set(channel, (known = new Map()))
  let edits = known.get(protocol)
  if (!edits) {
    const spelling = spellingOf(channel, protocol)
    const own = spelling && editsFor(spelling, written)
    edits = own && spelling ? { ...NOTHING, remove: spelling.members, ...own } : NOTHING
    known.set(protocol, edits)
  }
  return edits
}

/** Adds headers. A beta feature is appended to those that the client names; any other header is replaced. */
export function withTierHeaders(given: readonly string[], added: readonly string[]): readonly string[] {
  if (added.length === 0) return given
  const headers = new Map<string, string>()
  for (let at = 0; at < given.length; at += 2) headers.set(given[at] ?? '', given[at + 1] ?? '')
  for (let at = 0; at < added.length; at += 2) {
    const [name = '', value = ''] = added.slice(at, at + 2)
    const before = name === 'anthropic-beta' ? headers.get(name) : undefined
    const names = (before ?? '').split(',').map((one) => one.trim())
    if (names.includes(value)) continue
    headers.set(name, before === undefined || before === '' ? value : `${before},${value}`)
  }
  return [...headers].flat()
}
