/** Settings of an upstream that decide what is sent to it. */
export interface UpstreamSettings {
  /** Base URL with the version and without a slash at the end: `https://api.example.com/v1`. */
  readonly base_url: string
  /** Maps the model names that clients send to the names that the upstream uses. */
  readonly model_mapping: ReadonlyMap<string, string>
  /** Request fields that may be sent, although not every upstream of the protocol accepts them. */
  readonly allow: ReadonlySet<AllowedField>
  /** Whether `store` is removed from requests. */
  readonly disable_store: boolean
  /** Whether requests are sent with all their fields, including those that `allow` would have to list. */
  readonly pass_through: boolean
}

/** JSON text of the standard service tier, as chat and responses requests name it. */
export const DEFAULT_TIER = '"default"'

/**
 * Whether chat and responses requests must name the standard service tier. Otherwise the provider would use
 * the tier set in its project, which may be more expensive.
 */
export function mustNameStandardTier({
  allow,
  base_url,
}: Pick<UpstreamSettings, 'allow' | 'base_url'>): boolean {
  return !allow.has('service_tier') && choosesTierByProject(base_url)
}

/** Whether an address is OpenAI's: for requests without a tier, OpenAI uses the tier set in the project. */
export function choosesTierByProject(base_url: string): boolean {
  return isOpenAiHost(base_url)
}

/** Whether an address is OpenAI's. */
export function isOpenAiHost(base_url: string): boolean {
  // Searching is faster than parsing, and most addresses do not match.
  return OPENAI_HOST.test(base_url) && URL.parse(base_url)?.hostname === 'api.openai.com'
}

const OPENAI_HOST = /api\.openai\.com/i
const ROUTER_HOST = /openrouter\.ai/i

/** Whether an address is OpenRouter's, which accepts the fields of all its providers. */
export function isOpenRouter(base_url: string): boolean {
  return ROUTER_HOST.test(base_url) && /(?:^|\.)openrouter\.ai$/.test(new URL(base_url).hostname)
}

/** Fields that are removed from a request unless the channel allows them. */
const GATED_FIELDS = [
  'service_tier',
  'safety_identifier',
  'include_obfuscation',
  'inference_geo',
  'speed',
] as const

/**
 * Request fields that may cause a different model or a different price. They are removed unless the channel
 * allows them, and listed in the header `x-gateway-dropped`. `models` stands for all fields that name other
 * models.
 */
const REROUTING_FIELDS = [
  'models',
  'route',
  'provider',
  'plugins',
  'transforms',
  'search_parameters',
  'extra_body',
] as const

/**
 * Request fields that only some chat upstreams accept. They are left out when a request is converted to chat,
 * unless the channel allows them.
 */
const CONVERTED_FIELDS = [
  'cache_control',
  'metadata',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'store',
  'user',
  'verbosity',
] as const

/** Members of requests that a channel may allow. */
const ALLOWABLE_MEMBERS = [...GATED_FIELDS, ...CONVERTED_FIELDS, ...REROUTING_FIELDS] as const

/** What a channel may allow: members of requests, and `session` for the headers that name the client's session. */
export const ALLOWABLE_FIELDS = [...ALLOWABLE_MEMBERS, 'session'] as const

/** A request field that is removed unless the channel allows it. */
export type RestrictedField = (typeof GATED_FIELDS)[number]

/** A request field that may cause a different model or price, by the name under which a channel allows it. */
export type ReroutingField = (typeof REROUTING_FIELDS)[number]

/** Request field, or `session`, that a channel may allow. */
export type AllowedField = (typeof ALLOWABLE_FIELDS)[number]

/**
 * Top-level members of a request that may cause a different model or price, with the name under which a
 * channel allows each.
 */
const REROUTING: ReadonlyMap<string, ReroutingField> = new Map<string, ReroutingField>([
  ...REROUTING_FIELDS.map((field) => [field, field] as const),
  ['fallbacks', 'models'],
  ['preset', 'models'],
])

/** Members that are removed from requests of any protocol, unless allowed. */
export const RESTRICTED_MEMBERS: readonly string[] = [...ALLOWABLE_MEMBERS, ...REROUTING.keys()]

/** Members that name other models, such as `fallback_models` and `draftModel`. */
const NAMES_MODELS = /models?$/iu

/**
 * Name under which a channel allows a top-level member that may cause a different model or price; undefined
 * for all other members.
 */
export function reroutingField(member: string): ReroutingField | undefined {
  const known = REROUTING.get(member)
  if (known || member === 'model' || !NAMES_MODELS.test(member)) return known
  return 'models'
}

/**
 * How `x-gateway-dropped` names a member that may cause a different model or price. The name is one of a
 * fixed list. Undefined for all other members.
 */
export function reroutingMemberName(member: string): string | undefined {
  return REROUTING.has(member) ? member : reroutingField(member)
}
