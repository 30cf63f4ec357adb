import { firstStatedTier, STANDARD_TIER_NAME } from '@sluice/wire/service-tier'

/** Header in which Bedrock states the service tier that served a call, and in which requests name one. */
export const BEDROCK_TIER_HEADER = 'x-amzn-bedrock-service-tier'

/** Header in which Vertex AI states the service tier that served a call, and in which requests name one. */
export const VERTEX_TIER_HEADER = 'x-vertex-ai-llm-shared-request-type'

/**
 * Header in which requests to Vertex AI choose between purchased capacity (provisioned throughput) and the
 * service tiers.
 */
export const VERTEX_TYPE_HEADER = 'x-vertex-ai-llm-request-type'

/** Values of the header with the service tier, by the gateway's own names of the tiers. */
const BEDROCK_VALUES: Readonly<Record<string, string>> = {
  [STANDARD_TIER_NAME]: 'default',
  flex: 'flex',
  fast: 'priority',
  reserved: 'reserved',
}
const VERTEX_VALUES: Readonly<Record<string, string>> = { flex: 'flex', fast: 'priority' }

/** A service tier that a request names in a JSON member, converted to a header. */
export interface TierHeader {
  /** Name and value of the header; empty for the provider's default tier. */
  readonly header: readonly string[]
  /** Whether the provider does not have this tier, so that the tier is left out of the request. */
  readonly isLacking: boolean
}

/** Converts the service tier in a JSON member of a request to Bedrock's header. */
export function bedrockTierHeader(value: unknown): TierHeader {
  return tierHeader(value, BEDROCK_TIER_HEADER, BEDROCK_VALUES)
}

/**
 * Converts the service tier in a JSON member of a request to Vertex AI's header; there is no header for the
 * standard tier.
 */
export function vertexTierHeader(value: unknown): TierHeader {
  return tierHeader(value, VERTEX_TIER_HEADER, VERTEX_VALUES)
}

function tierHeader(value: unknown, name: string, values: Readonly<Record<string, string>>): TierHeader {
  const { tier } = firstStatedTier(value)
  const text = tier === undefined || !Object.hasOwn(values, tier) ? undefined : values[tier]
  const isLacking = text === undefined && value !== 'auto' && tier !== STANDARD_TIER_NAME
  return { header: text === undefined ? [] : [name, text], isLacking }
}
