import { type LitellmProvider, splitModel } from './litellm-providers.ts'
import type { ConfigurationNode, ConfigurationReader } from './readers.ts'
import { UnreadableValue } from './row-reader.ts'

/** A configuration of a LiteLLM proxy, as far as a gateway can serve it. */
export interface LitellmConfiguration {
  readonly channels: readonly LitellmChannel[]
  /** Prices of the models that were read, in the order of `model_list`; a model may have several. */
  readonly prices: readonly LitellmPrice[]
  /** What is tried after a model, in the order of the file. */
  readonly fallbacks: readonly LitellmFallback[]
  /** The models of each access group, whose name may stand among the models of a key or a team. */
  readonly accessGroups: ReadonlyMap<string, readonly string[]>
  /** The key of the proxy's administrator; undefined if it is not stated. */
  readonly masterKey: string | undefined
  /** Entries of `model_list` that cannot be read, and sections that have no counterpart. */
  readonly left: readonly LeftEntry[]
  readonly otherSections: readonly LeftEntry[]
}

/** All entries of `model_list` with the same provider, address and credentials. */
export interface LitellmChannel {
  /** Name that no other channel of the configuration has. */
  readonly name: string
  readonly provider: LitellmProvider
  /** Base URL; empty for that of the provider. */
  readonly address: string
  /** API key, or what else the provider needs as credentials; empty if there is none. */
  readonly key: string
  /** An API version, a region or a location. */
  readonly other: string
  /** Project of Vertex; empty if none is stated. */
  readonly project: string
  /** Environment variables that could not be read. */
  readonly missing: readonly string[]
  readonly models: readonly LitellmModel[]
}

/** Models that are tried after another one, and when. */
export interface LitellmFallback {
  readonly model: string
  readonly kind: 'fallback' | 'context_fallback' | 'content_fallback'
  readonly models: readonly string[]
}

/** One entry of `model_list`, or another name for one. */
export interface LitellmModel {
  /** The name that clients request, or a pattern such as `gpt-*` or `openai/*`. */
  readonly model: string
  /** The provider's name of the model, or the pattern of its names. */
  readonly upstream: string
  /** Requests and tokens per minute; 0 if no limit is stated. */
  readonly rpm: number
  readonly tpm: number
  /** Sentences about parameters that are not imported. */
  readonly notes: readonly string[]
}

/** Prices of a token in USD; undefined if not stated. */
export interface LitellmPrice {
  readonly model: string
  readonly input: StatedNumber | undefined
  readonly output: StatedNumber | undefined
  /** Whether the model is stated to return vectors, so that it has no output. */
  readonly isEmbedding: boolean
}

/** What a configuration states in place of a number. */
export interface StatedNumber {
  /** The text in the file, which contains no value of a variable. */
  readonly source: string
  /** The text, or the value of the variable that it names; undefined if that cannot be read. */
  readonly text: string | undefined
}

/** Something that is not imported: its name, and a sentence that says why. */
export interface LeftEntry {
  readonly name: string
  readonly note: string
}

/** Reads the environment variables to which a configuration refers. */
export interface VariableReader {
  /** Reads a variable; undefined if it is not set or must not be read. */
  readonly variable: (name: string) => string | undefined
  /** Why a variable is missing, as the end of a sentence: `is not set`. */
  readonly missing: string
}

/** Maximum number of models in a configuration. */
const MAX_MODELS = 10_000

/** A reference to an environment variable in LiteLLM's syntax. */
const VARIABLE = /^os\.environ\/(.+)$/

/** Members of `litellm_params`, and prices in `model_info`, that are imported. */
const CARRIED: ReadonlySet<string> = new Set([
  'model',
  'custom_llm_provider',
  'api_base',
  'base_url',
  'api_key',
  'api_version',
  'aws_access_key_id',
  'aws_secret_access_key',
  'aws_session_token',
  'aws_region_name',
  'vertex_project',
  'vertex_location',
  'vertex_credentials',
  'rpm',
  'tpm',
  'input_cost_per_token',
  'output_cost_per_token',
])

/** Members of `litellm_settings` and `router_settings` that are imported. */
const FALLBACKS: Readonly<Record<string, LitellmFallback['kind']>> = {
  fallbacks: 'fallback',
  context_window_fallbacks: 'context_fallback',
  content_policy_fallbacks: 'content_fallback',
}
const ALIASES = 'model_group_alias'
const ROUTING_SECTIONS = ['litellm_settings', 'router_settings'] as const

/**
 * Sections of a LiteLLM configuration that are not imported, each with a note on what this gateway has
 * instead.
 */
const SECTIONS: ReadonlyMap<string, string> = new Map([
  ['general_settings', 'it has no counterpart here; --database imports the keys'],
  ['litellm_settings', 'see docs/configuration.md for the options of this gateway'],
  ['router_settings', 'options.retries, options.balance and models.NAME.fallback take their place'],
  ['environment_variables', 'set the variables in the environment of this gateway'],
  ['include', 'import each of the files by itself'],
])

/** One entry of `model_list`, with what it says about its channel. */
interface Deployment {
  /** Name for the channel, derived from the provider. */
  readonly channel: string
  readonly place: Omit<LitellmChannel, 'name' | 'models'>
  readonly model: LitellmModel
}

/**
 * Reads the configuration of a LiteLLM proxy; undefined if the text is not such a configuration. Throws
 * a sentence for the operator if the configuration is invalid. `stored`: sections in the database of the proxy, as
 * JSON, whose routing takes the place of that of the file.
 */
export function readLitellm(
  text: string,
  { parse }: Pick<ConfigurationReader, 'parse'>,
  variables: VariableReader,
  stored: ReadonlyMap<string, string> = new Map(),
): LitellmConfiguration | undefined {
  const { tree, error } = parse(withoutVariables(text))
  const list = childOf(tree, 'model_list')
  if (error && /^model_list\s*:/m.test(text))
    throw new Error(`the configuration cannot be read: line ${error.line}: ${error.message}`)
  if (!Array.isArray(list)) return undefined
  requireFew(list.length)
  const left: LeftEntry[] = []
  const deployments: Deployment[] = []
  const prices: LitellmPrice[] = []
  for (const [index, entry] of (list as readonly ConfigurationNode[]).entries()) {
    const name = textIn(entry, 'model_name') ?? ''
    try {
      deployments.push(deploymentOf(entry, name, variables))
      prices.push(priceOf(entry, name, variables))
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error
      left.push({ name: name === '' ? `model_list[${index}]` : name, note: error.message })
    }
  }
  const inDatabase: ConfigurationNode = {
    names: [...stored.keys()],
    nodes: [...stored.values()].map((json) => parse(withoutVariables(json)).tree),
  }
  const [ofFile, ofDatabase] = [readRouting(tree), readRouting(inDatabase)]
  addAliases(new Map([...ofFile.aliases, ...ofDatabase.aliases]), deployments, prices, left)
  const master = textIn(childOf(tree, 'general_settings'), 'master_key')
  return {
    channels: channelsOf(deployments),
    prices,
    fallbacks: [...ofFile.fallbacks, ...ofDatabase.fallbacks],
    accessGroups: accessGroupsIn(list),
    masterKey: master === undefined ? undefined : valueOf(master, variables),
    left,
    otherSections: otherSections(tree, inDatabase),
  }
}

/** Reads the fallbacks and the other names of models in `litellm_settings` and `router_settings`. */
function readRouting(tree: ConfigurationNode): {
  readonly aliases: readonly (readonly [alias: string, model: string])[]
  readonly fallbacks: readonly LitellmFallback[]
} {
  const sections = ROUTING_SECTIONS.map((section) => childOf(tree, section))
  const fallbacks = sections.flatMap((section) =>
    Object.entries(FALLBACKS).flatMap(([name, kind]) =>
      entriesIn(childOf(section, name)).map(([model, models]) => ({ model, kind, models: textsIn(models) })),
    ),
  )
  const aliases = sections.flatMap((section) =>
    entriesIn(childOf(section, ALIASES)).map(
      // A hidden alias is stated as a mapping.
      ([alias, node]) => [alias, textOf(node) ?? textIn(node, 'model') ?? ''] as const,
    ),
  )
  return { aliases, fallbacks }
}

// An alias is one more name for each entry of its model.
function addAliases(
  aliases: ReadonlyMap<string, string>,
  deployments: Deployment[],
  prices: LitellmPrice[],
  left: LeftEntry[],
): void {
  for (const [alias, name] of aliases) {
    const named = deployments.filter(({ model }) => model.model === name)
    if (named.length === 0)
      left.push({
        name: alias,
        note: `${ALIASES}: expected the name of a model in model_list, found "${name}"`,
      })
    for (const { model, ...deployment } of named)
      deployments.push({ ...deployment, model: { ...model, model: alias, notes: [] } })
    requireFew(deployments.length)
    for (const price of prices.filter(({ model }) => model === name)) prices.push({ ...price, model: alias })
  }
}

function requireFew(models: number): void {
  if (models > MAX_MODELS)
    throw new Error(`model_list has more than ${MAX_MODELS} entries, its aliases included`)
}

/** A text of the configuration, or the value of the variable that it names. */
function valueOf(text: string, { variable }: VariableReader): string | undefined {
  const name = VARIABLE.exec(text)?.[1]
  return name === undefined ? text : variable(name)
}

// Escapes `${NAME}`, because LiteLLM does not expand it and the YAML parser would.
function withoutVariables(text: string): string {
  return text.replaceAll('${', () => '$${')
}

function deploymentOf(entry: ConfigurationNode, model: string, variables: VariableReader): Deployment {
  const params = childOf(entry, 'litellm_params')
  if (model === '') throw new UnreadableValue('model_name', 'a name')
  const stated = textIn(params, 'model') ?? ''
  if (stated === '') throw new UnreadableValue('litellm_params.model', 'PROVIDER/MODEL')
  const missing: string[] = []
  const read = (name: string): string => {
    const text = textIn(params, name)?.trim() ?? ''
    const variable = VARIABLE.exec(text)?.[1]
    if (variable === undefined) return text
    const value = variables.variable(variable)
    if (value === undefined) missing.push(variable)
    return value ?? ''
  }
  const split = splitModel(stated, read('custom_llm_provider') || undefined)
  if ('unknown' in split)
    throw new UnreadableValue(
      'litellm_params.model',
      `a provider that this gateway can call, found "${split.unknown}"`,
    )
  const { provider, channel, upstream } = split
  if (model.includes('*') ? !isPattern(model, upstream) : upstream.includes('*'))
    throw new UnreadableValue('model_name', 'a model, or a pattern like that of litellm_params.model')
  const address = read('api_base') || read('base_url')
  if (address === '' && missing.length > 0)
    throw new UnreadableValue(
      'api_base',
      `an address, found the variable ${missing.join(', ')}, which ${variables.missing}`,
    )
  const ranks = /rerank/i.test(upstream)
  const costs = namesOf(childOf(entry, 'model_info')).filter((name) => /cost|pricing/.test(name))
  const notes = [
    ...namesOf(params).map((name) => ['litellm_params', name] as const),
    ...costs.map((name) => ['model_info', name] as const),
  ]
    .filter(([, name]) => !CARRIED.has(name))
    .map(([section, name]) => `${model}: ${section}.${name} has no effect here`)
  return {
    channel: ranks ? `${channel}-rerank` : channel,
    place: {
      provider: ranks ? { type: RERANKERS.get(channel) ?? RERANK } : provider,
      address,
      ...credentials(provider, read),
      missing,
    },
    model: { model, upstream, rpm: count(params, 'rpm'), tpm: count(params, 'tpm'), notes },
  }
}

// `gpt-*` for `openai/gpt-*`, or a prefix for all models of the provider.
function isPattern(model: string, upstream: string): boolean {
  return model === upstream || (upstream === '*' && /^[^*]*\/\*$/.test(model))
}

/** Number of the channel type for rerank models. Vendors in `RERANKERS` have separate channel types. */
const RERANK = 38
const RERANKERS: ReadonlyMap<string, number> = new Map([['cohere', 34]])

/** Reads the API key of an entry, and the provider's other settings. */
function credentials(
  provider: LitellmProvider,
  read: (name: string) => string,
): Pick<LitellmChannel, 'key' | 'other' | 'project'> {
  switch (provider.credentials) {
    case 'azure':
      return { key: read('api_key'), other: read('api_version'), project: '' }
    case 'bedrock': {
      const parts = [read('aws_access_key_id'), read('aws_secret_access_key'), read('aws_session_token')]
      const signed = parts.filter((part) => part !== '').join(':')
      return { key: signed || read('api_key'), other: read('aws_region_name'), project: '' }
    }
    case 'vertex':
      return {
        project: read('vertex_project'),
        key: compactObject(read('vertex_credentials')),
        other: read('vertex_location'),
      }
    case undefined:
      return { key: read('api_key'), other: '', project: '' }
  }
}

/** The JSON object in a text, on one line; empty for any other text. */
function compactObject(text: string): string {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? JSON.stringify(value) : ''
  } catch {
    return ''
  }
}

function channelsOf(deployments: readonly Deployment[]): readonly LitellmChannel[] {
  const channels: (LitellmChannel & { readonly models: LitellmModel[] })[] = []
  const places = new Map<string, typeof channels>()
  const names = new Map<string, number>()
  for (const { channel, place, model } of deployments) {
    const key = JSON.stringify([channel, { ...place, provider: place.provider.type }])
    const alike = places.get(key) ?? []
    // A channel maps each model to one upstream name, so a second upstream name for a model needs a second
    // channel.
    const known = alike.find(({ models }) => models.every((other) => other.model !== model.model))
    if (known) {
      known.models.push(model)
      continue
    }
    const number = (names.get(channel) ?? 0) + 1
    names.set(channel, number)
    const made = { ...place, name: number === 1 ? channel : `${channel}-${number}`, models: [model] }
    channels.push(made)
    places.set(key, [...alike, made])
  }
  return channels
}

function priceOf(entry: ConfigurationNode, model: string, variables: VariableReader): LitellmPrice {
  const info = childOf(entry, 'model_info')
  const read = (name: string): StatedNumber | undefined => {
    const node = childOf(childOf(entry, 'litellm_params'), name) ?? childOf(info, name)
    if (node === undefined) return undefined
    if (!('source' in node)) return { source: 'a list or a mapping', text: '' }
    return { source: node.source, text: valueOf(node.source, variables) }
  }
  return {
    model,
    input: read('input_cost_per_token'),
    output: read('output_cost_per_token'),
    isEmbedding: textIn(info, 'mode') === 'embedding',
  }
}

function accessGroupsIn(list: readonly ConfigurationNode[]): LitellmConfiguration['accessGroups'] {
  const groups = new Map<string, string[]>()
  for (const entry of list) {
    const model = textIn(entry, 'model_name')
    if (model === undefined) continue
    for (const name of textsIn(childOf(childOf(entry, 'model_info'), 'access_groups')))
      groups.set(name, [...(groups.get(name) ?? []), model])
  }
  return groups
}

function otherSections(...trees: readonly ConfigurationNode[]): readonly LeftEntry[] {
  const notes = new Map<string, string>()
  for (const tree of trees)
    for (const section of namesOf(tree).filter((name) => name !== 'model_list')) {
      const known = (ROUTING_SECTIONS as readonly string[]).includes(section)
      const names = namesOf(childOf(tree, section)).filter((name) => !(known && isRouting(name)))
      if (known && names.length === 0) continue
      const note = SECTIONS.get(section) ?? 'it has no counterpart here'
      const listed = names.length > 0 ? names.map((name) => `${section}.${name}`) : [section]
      for (const name of listed) notes.set(name, note)
    }
  return [...notes].map(([name, note]) => ({ name, note }))
}

function isRouting(name: string): boolean {
  return Object.hasOwn(FALLBACKS, name) || name === ALIASES
}

/** The entries of a mapping, or of a list of mappings. */
function entriesIn(node: ConfigurationNode): (readonly [name: string, node: ConfigurationNode])[] {
  if (Array.isArray(node)) return (node as readonly ConfigurationNode[]).flatMap(entriesIn)
  return namesOf(node).map((name) => [name, childOf(node, name)] as const)
}

/** The texts in a list; a single text counts as a list. */
function textsIn(node: ConfigurationNode): readonly string[] {
  const nodes = Array.isArray(node) ? (node as readonly ConfigurationNode[]) : [node]
  return nodes.flatMap((one) => textOf(one) ?? [])
}

function textOf(node: ConfigurationNode): string | undefined {
  return node !== undefined && 'source' in node ? String(node.value) : undefined
}

function childOf(node: ConfigurationNode, name: string): ConfigurationNode {
  return node !== undefined && 'names' in node ? node.nodes[node.names.indexOf(name)] : undefined
}

function namesOf(node: ConfigurationNode): readonly string[] {
  return node !== undefined && 'names' in node ? node.names : []
}

function textIn(node: ConfigurationNode, name: string): string | undefined {
  return textOf(childOf(node, name))
}

function count(params: ConfigurationNode, name: string): number {
  const value = Number(textIn(params, name) ?? 0)
  return Number.isSafeInteger(value) && value > 0 ? value : 0
}
