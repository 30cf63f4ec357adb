/** Fields of a request that are removed before forwarding unless the channel allows them. */
const GATED_FIELDS = [
  'service_tier',
  'safety_identifier',
  'include_obfuscation',
  'inference_geo',
  'speed',
] as const

/**
 * Fields by which routers and providers answer with another model, or at another price, than the one that is
 * called. They are removed in the same way, and listed in `x-gateway-dropped`.
 * `docs/api.md: Other models and prices`.
 */
export const REROUTING_FIELDS = [
  'models',
  'route',
  'provider',
  'plugins',
  'transforms',
  'preset',
  'fallbacks',
  'search_parameters',
  'extra_body',
] as const

/** Field that is removed unless a channel allows it. */
export type GatedField = (typeof GATED_FIELDS)[number]

/** Field that can lead to another model or price. */
export type ReroutingField = (typeof REROUTING_FIELDS)[number]

/** Fields that a channel may allow: `cache_control` is for requests converted for a chat upstream. */
export const ALLOWABLE_FIELDS = [...GATED_FIELDS, ...REROUTING_FIELDS, 'cache_control'] as const

/** Field that a channel may allow. */
export type AllowedField = (typeof ALLOWABLE_FIELDS)[number]
