import type { ProtocolName } from '@sluice/wire/protocols'
import { decimalText, divide } from '../domain/decimal.ts'
import type { Channel } from '../domain/records/channel.ts'
import { FALLBACK_REASONS, type ModelSettings } from '../domain/records/model.ts'
import type { DeclaredUser } from '../domain/records/user.ts'
import { daysUntilRetirement } from '../domain/model-retirement.ts'
import type { Settings } from '../domain/settings.ts'
import { unknownScopes } from '../domain/unknown-scopes.ts'
import { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { Issue } from './fields.ts'
import { unlistableNames } from './invisible-names.ts'
import { isModelPattern, matchesModelPattern } from './model-patterns.ts'
import type { BuiltInPrices } from './built-in-prices.ts'
import type { PriceList } from './price-file.ts'
import { VENDORS } from './vendors.ts'
import { childOfNode, itemsOfNode, type YamlNode, YamlScalar } from './yaml-node.ts'

/** Minimum length in characters of a secret that cannot be guessed; shorter ones cause a warning. */
const MIN_SECRET_LENGTH = 16

/** The path that calls append to a channel's base URL, by protocol. */
const ENDPOINTS: Readonly<Record<ProtocolName, string>> = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
  gemini: '/models',
  converse: '/model',
  rerank: '/rerank',
}

/** Warnings say where they looked: the database may have groups, channels and servers that were added over HTTP. */
const IN_FILE = ' in gateway.yaml'

/** The prices of models that gateway.yaml does not price, and the built-in prices among them. */
interface ListedPrices {
  readonly prices: PriceList
  readonly builtIn: BuiltInPrices
}

/** Warnings about settings that are valid but probably unintended. */
export function findWarnings(
  settings: Settings,
  models: ReadonlyMap<string, ModelSettings>,
  users: readonly DeclaredUser[],
  { prices, builtIn }: ListedPrices,
  tree: YamlNode,
): Issue[] {
  const served = new Set(settings.channels.flatMap((channel) => channel.models))
  return [
    ...(settings.channels.length > 0 ? [] : [NO_CHANNEL]),
    ...settings.channels.flatMap((channel, index) => channelWarnings(channel, index)),
    ...unpriced(settings, served, tree),
    ...endWarnings(settings, tree),
    ...unmatchedPatterns(settings, tree),
    ...uncharged(settings, models, served, prices),
    ...defaultCacheReads(settings, models, builtIn, tree),
    ...[...models.keys()]
      .filter((name) => !served.has(name) && !othersOf(models.get(name)).some((other) => served.has(other)))
      .map((name) => ({ path: ['models', name], message: `no channel${IN_FILE} serves this model` })),
    ...[...models].flatMap(([name, entry]) => fallbackWarnings(name, entry, settings, served)),
    ...users.flatMap((user, index) => userWarnings(user, index)),
    ...loginWarnings(settings),
    ...scopeWarnings(settings),
    ...unlistableNames(tree),
    ...unbracedVariables(tree),
    ...quotedKeys(settings, users, tree),
  ]
}

const QUOTED = /^(["']).*\1$/s

const QUOTES: Issue['message'] = 'the quotes around it are part of the key: write it without them'

/**
 * Warns of keys in quotes, which some tools do not remove from their files of environment variables. A
 * channel that a vendor's key made has no line in the file.
 */
function quotedKeys({ channels }: Settings, users: readonly DeclaredUser[], tree: YamlNode): Issue[] {
  const declared = itemsOfNode(childOfNode(tree, 'channels')).length
  return [
    ...channels.flatMap(({ name, keys }, index) =>
      keys.flatMap((key, position) => {
        if (!QUOTED.test(key)) return []
        return index < declared
          ? [{ path: ['channels', index, 'keys', position], message: QUOTES }]
          : [{ path: ['channels'], message: `the key of ${name}: ${QUOTES}` }]
      }),
    ),
    ...users.flatMap(({ tokens }, index) =>
      tokens.flatMap(({ key = '' }, position) =>
        QUOTED.test(key) ? [{ path: ['users', index, 'tokens', position, 'key'], message: QUOTES }] : [],
      ),
    ),
  ]
}

/** The models that may be called instead of a model: its fallbacks and its successor. */
function othersOf(model: ModelSettings | undefined): readonly string[] {
  return [...(model?.fallback ?? []), ...(model?.successor === undefined ? [] : [model.successor])]
}

function fallbackWarnings(
  name: string,
  entry: ModelSettings,
  { models, options }: Settings,
  served: ReadonlySet<string>,
): Issue[] {
  const { successor } = entry
  const named = (['fallback', ...FALLBACK_REASONS] as const).flatMap((list) =>
    entry[list].map((other, index) => ({
      other,
      path: ['models', name, list, index] as (string | number)[],
    })),
  )
  if (successor !== undefined) named.push({ other: successor, path: ['models', name, 'successor'] })
  return named.flatMap(({ other, path }) => {
    if (!served.has(other)) {
      const effect = 'calls go on with it only if one that was added over HTTP does'
      return [{ path, message: `no channel${IN_FILE} serves ${other}: ${effect}` }]
    }
    const isPriced = models.get(other).price !== undefined || options.unpriced_models === 'free'
    return isPriced ? [] : [{ path, message: `${other} has no price: no call goes on with it` }]
  })
}

/** A warning is given for models that their vendor shuts down within this number of days. */
const ENDING_DAYS = 30

/**
 * One warning for each day on which models are shut down, because a vendor often ends several on the same
 * day.
 */
function endWarnings(settings: Settings, tree: YamlNode): Issue[] {
  const nowMs = Date.now()
  const ending = NO_LISTS.of(settings).ending.filter(
    ({ end }) => daysUntilRetirement(end, nowMs) <= ENDING_DAYS,
  )
  return [...Map.groupBy(ending, ({ end }) => end.on)].map(([on, models]) => {
    const [{ model } = { model: '' }] = models
    const index = settings.channels.findIndex((channel) => channel.models.includes(model))
    const position = entriesOf(tree, index).indexOf(model)
    const path = position === -1 ? ['channels'] : ['channels', index, 'models', position]
    const more = models.length > 3 ? ` and ${models.length - 3} more` : ''
    const names = models.slice(0, 3).map((one) => one.model)
    const verb = daysUntilRetirement({ on }, nowMs) === 0 ? 'ended' : models.length === 1 ? 'ends' : 'end'
    const missing = models.some((one) => settings.models.get(one.model).successor === undefined)
    const hint = missing ? '; models.NAME.successor names the model that takes its place' : ''
    return { path, message: `${names.join(', ')}${more} ${verb} on ${on}, as the vendor states${hint}` }
  })
}

/** Shutdown dates from the price data alone, because checking a file must not send requests to upstreams. */
const NO_LISTS = new ModelRetirements((address) => address)

/** The warning of a file and an environment without channels; the database may have some. */
export const NO_CHANNEL: Issue = {
  path: ['channels'],
  message:
    'there is no channel, and no *_API_KEY of a known vendor in the environment: only channels that were added over HTTP can serve calls',
}

function channelWarnings(channel: Channel, index: number): Issue[] {
  const complete = completeBaseUrl(channel)
  return [
    ...(complete === undefined ? [] : [missingPath(channel, index, complete)]),
    ...[...channel.model_mapping.keys()]
      .filter((name) => !channel.models.includes(name))
      .map((name) => ({
        path: ['channels', index, 'model_mapping', name],
        message: 'models does not list this name, so it is never mapped',
      })),
  ]
}

function missingPath({ base_url, protocol: protocols }: Channel, index: number, complete: string): Issue {
  const [protocol = 'chat'] = protocols
  return {
    path: ['channels', index, 'base_url'],
    message: `calls go to ${base_url}${ENDPOINTS[protocol]}, where this provider does not answer; its base_url is ${complete}`,
  }
}

/** The entries of a channel's `models`, as written in the file; `index` is the channel's position. */
function entriesOf(tree: YamlNode, index: number): string[] {
  const entries = itemsOfNode(childOfNode(itemsOfNode(childOfNode(tree, 'channels'))[index], 'models'))
  return entries.map((entry) => (entry instanceof YamlScalar ? String(entry.value) : ''))
}

function unmatchedPatterns({ channels }: Settings, tree: YamlNode): Issue[] {
  return channels.flatMap((channel, index) =>
    entriesOf(tree, index).flatMap((entry, position) =>
      !isModelPattern(entry) || channel.models.some((name) => matchesModelPattern(name, entry))
        ? []
        : [{ path: ['channels', index, 'models', position], message: 'no priced model matches' }],
    ),
  )
}

function unpriced(
  { options, models, channels }: Settings,
  served: ReadonlySet<string>,
  tree: YamlNode,
): Issue[] {
  const names = [...served].filter((name) => models.get(name).price === undefined)
  const ofKeys = names.filter((name) => {
    const index = channels.findIndex((channel) => channel.models.includes(name))
    return !entriesOf(tree, index).includes(name)
  })
  return [
    ...names.map((name) => {
      const index = channels.findIndex((channel) => channel.models.includes(name))
      const position = entriesOf(tree, index).indexOf(name)
      // A channel made from a vendor key has no entry in the file.
      const path = position === -1 ? ['channels'] : ['channels', index, 'models', position]
      const effect = options.unpriced_models === 'refuse' ? 'calls to it are refused' : 'calls to it are free'
      return { path, message: `${name} has no price: ${effect}` }
    }),
    ...(ofKeys.length > 0 && options.unpriced_models === 'refuse' ? [priceLine(ofKeys)] : []),
  ]
}

/** Suggests the line of gateway.yaml that makes a vendor's unpriced models usable. */
function priceLine(names: readonly string[]): Issue {
  const entries = names.map((name) => `${JSON.stringify(name)}: { price: { input: 0.05, output: 0 } }`)
  const message = `write their prices into gateway.yaml, in USD per million tokens, such as: models: { ${entries.join(', ')} }`
  return { path: ['models'], message }
}

/**
 * Warns of prices that the built-in price list contains but the gateway does not charge. All models with the
 * same kind of price share one warning.
 */
function uncharged(
  settings: Settings,
  models: ReadonlyMap<string, ModelSettings>,
  served: ReadonlySet<string>,
  prices: PriceList,
): Issue[] {
  const byKind = new Map<string, string[]>()
  for (const name of served) {
    if (models.get(name)?.price) continue
    for (const kind of prices.get(name, settings.models.get(name).vendor)?.uncharged ?? []) {
      byKind.set(kind, [...(byKind.get(kind) ?? []), name])
    }
  }
  return [...byKind].map(([kind, names]) => {
    const more = names.length > 3 ? ` and ${names.length - 3} more` : ''
    return {
      path: ['models'],
      message: `the built-in price of ${names.slice(0, 3).join(', ')}${more} has ${kind}, which is not charged`,
    }
  })
}

/**
 * Warns of declared prices without `cache_read` if the default, a tenth of `input`, differs from the ratio of
 * the built-in price.
 */
function defaultCacheReads(
  settings: Settings,
  models: ReadonlyMap<string, ModelSettings>,
  builtIn: BuiltInPrices,
  tree: YamlNode,
): Issue[] {
  return [...models].flatMap(([name, { price }]) => {
    const stated = childOfNode(childOfNode(childOfNode(tree, 'models'), name), 'price')
    if (!price || !childOfNode(stated, 'input') || childOfNode(stated, 'cache_read')) return []
    const known = builtIn.get(name, settings.models.get(name).vendor)?.price?.tokens
    if (!known || known.input.digits === 0n || price.tokens.input.digits === 0n) return []
    const ratio = decimalText(divide(known.cache_read, known.input, 4))
    if (ratio === decimalText(divide(price.tokens.cache_read, price.tokens.input, 4))) return []
    const message = `without cache_read, a token read from a cache costs a tenth of input; by the built-in price of ${name} it costs ${ratio} of input`
    return [{ path: ['models', name, 'price'], message }]
  })
}

/**
 * Warns of identity providers whose issuer has no https URL, because anyone on the network path could read
 * sign-ins.
 */
function loginWarnings({ login }: Settings): Issue[] {
  const nobody: Issue = {
    path: ['login', 'password'],
    message: 'without an identity provider, users sign in by access token alone',
  }
  return [
    ...(login.password || login.oidc.length > 0 ? [] : [nobody]),
    ...login.oidc.flatMap(({ issuer }, index) =>
      issuer.startsWith('https:') || isLoopback(issuer)
        ? []
        : [{ path: ['login', 'oidc', index, 'issuer'], message: 'http: whoever is on the way can sign in' }],
    ),
  ]
}

function isLoopback(url: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(URL.parse(url)?.hostname ?? '')
}

function scopeWarnings(settings: Settings): Issue[] {
  const unknown = unknownScopes(settings, IN_FILE)
  const { guards, mcp } = settings
  return [
    ...guards.map((guard, index) => ({ at: ['guards', index], found: unknown(guard) })),
    ...mcp.toolsets.map((toolset, index) => ({ at: ['mcp', 'toolsets', index], found: unknown(toolset) })),
  ].flatMap(({ at, found }) => found.map(({ path, message }) => ({ path: [...at, ...path], message })))
}

function userWarnings(user: DeclaredUser, index: number): Issue[] {
  const issues: Issue[] = []
  const path = ['users', index]
  const short = `fewer than ${MIN_SECRET_LENGTH} characters can be guessed`
  if (user.access_token !== undefined && user.access_token.length < MIN_SECRET_LENGTH) {
    issues.push({ path: [...path, 'access_token'], message: short })
  }
  for (const [position, token] of user.tokens.entries()) {
    const at = [...path, 'tokens', position]
    if (token.key !== undefined && token.key.length < MIN_SECRET_LENGTH) {
      issues.push({ path: [...at, 'key'], message: short })
    }
    if (token.model_limits !== '' && !token.model_limits_enabled) {
      issues.push({
        path: [...at, 'model_limits'],
        message: 'without model_limits_enabled: true it limits nothing',
      })
    }
  }
  return issues
}

/** Base URLs of vendors that are correct although they are not in `VENDORS`. */
const OTHER_VALID_BASE_URLS: ReadonlySet<string> = new Set(['https://api.deepseek.com'])

/** Google's address for the chat protocol; it is below the address of Gemini's own protocol. */
const GOOGLE_CHAT = {
  protocol: 'chat',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
} as const

/**
 * The base URL that was probably meant, if a channel has the base URL of a known vendor but without the
 * version.
 */
function completeBaseUrl({
  base_url: baseUrl,
  protocol: protocols,
}: Pick<Channel, 'base_url' | 'protocol'>): string | undefined {
  if (OTHER_VALID_BASE_URLS.has(baseUrl)) return undefined
  return [...VENDORS, GOOGLE_CHAT].find(
    (known) => protocols.includes(known.protocol) && known.baseUrl.startsWith(`${baseUrl}/`),
  )?.baseUrl
}

/**
 * Matches a variable without braces at the end of a value, which a shell would expand: `$KEY`, `Bearer $KEY`.
 */
const UNBRACED = /(?:^|\s)\$[A-Za-z_]\w*$/

const MISSING_BRACES: Issue['message'] =
  'a variable is written ${NAME}, in braces: without braces the text is used literally'

/**
 * Finds values that were probably meant as variables. The warnings do not show the values, because they may
 * be secrets.
 */
function unbracedVariables(tree: YamlNode): Issue[] {
  const found: Issue[] = []
  const path: (string | number)[] = []
  collect(tree)
  return found

  function collect(node: YamlNode): void {
    if (node === undefined) return
    if (node instanceof YamlScalar) {
      if (node.source.includes('$') && UNBRACED.test(node.source))
        found.push({ path: [...path], message: MISSING_BRACES })
      return
    }
    for (const key of Object.keys(node)) {
      path.push(Array.isArray(node) ? Number(key) : key)
      collect((node as Readonly<Record<string, YamlNode>>)[key])
      path.pop()
    }
  }
}
